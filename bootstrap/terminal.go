package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// coloured reports whether stdout is for colour: a terminal, and neither --no-color, NO_COLOR nor TERM=dumb says no.
func (p *program) coloured() bool {
	return !p.noColor && os.Getenv("NO_COLOR") == "" && !dumbTerminal() && isTerminal(p.stdout)
}

func dumbTerminal() bool { return os.Getenv("TERM") == "dumb" }

// The colours of a verdict. Every one is a word as well.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// paint gives a verdict of at least so many characters, in its colour where there is colour.
func (p *program) paint(verdict string, width int) string {
	if !p.coloured() {
		return fmt.Sprintf("%-*s", width, verdict)
	}
	colour := yellow
	switch verdict {
	case "holds", "right", "ready", "done", "ok", "open", "confirmed":
		colour = green
	case "broken", "wrong", "missing", "damaged", "away", "not ready", "missed":
		colour = red
	}
	return fmt.Sprintf("%s%-*s%s", colour, width, verdict, plain)
}

// confirmed lets a command change something: --yes says so, or whoever sits at the terminal. Where nobody can be asked it is
// a mistake of usage.
func (p *program) confirmed(ctx context.Context, effect string) error {
	if p.yes {
		return nil
	}
	if !isTerminal(p.stdin) {
		return withExit(ExitUsage, fmt.Errorf("%s; there is no terminal to ask at, so say --yes", effect))
	}
	_, _ = fmt.Fprintf(p.stderr, "%s. Go on? [y/N] ", effect)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(p.stdin).ReadString('\n') // an end of input is a no
		answered <- line
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answered:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		return errors.New("nothing was changed")
	}
}

package bootstrap

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"seckill/application"
)

// errUnread ends an examination that could not read all that matters.
var errUnread = &exitError{ExitUnreachable, errors.New("something that the promise hangs on could not be read; see unknown above")}

func (p *program) doctorCommand() *cobra.Command {
	var door doorFlags
	var all bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine the live servers' settings that the promise hangs on",
		Long: "Reads the settings and the state of Redis, broker, database and the service itself, within ten seconds, and\n" +
			"changes nothing. Each finding says what is right, what was found, why it matters and how to change it.\n" +
			"  right    as it should be\n" +
			"  note     fine as it is; good to know\n" +
			"  wrong    a promise hangs on it\n" +
			"  unknown  could not be read, and why\n" +
			"Exit codes: 0 nothing is wrong (notes may be), 4 something is wrong, 3 nothing is known to be wrong, but something\n" +
			"that matters could not be read, 2 usage or settings.",
		Example: "  seckill doctor\n  seckill doctor --all\n  seckill doctor -o json\n" +
			"  seckill doctor --admin http://127.0.0.1:8081 --token $TOKEN   # as a running service sees it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			x, err := p.examine(cmd.Context(), c, &door)
			if err != nil {
				return err
			}
			if err := p.print(x, func() { p.printExamination(x, all) }); err != nil {
				return err
			}
			switch {
			case x.Wrong > 0:
				return errViolation
			case x.Unknown > 0:
				return errUnread
			}
			return nil
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "print what is right, too")
	return cmd
}

func (p *program) examine(ctx context.Context, c Config, door *doorFlags) (x application.Examination, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return x, err
	}
	if client != nil {
		return readAnswer[application.Examination](client.Examine(ctx))
	}
	if c.Embedded() {
		err = p.withTools(ctx, c, func(app *App) error {
			x, err = app.Examine.Examine(ctx)
			return err
		})
		return x, err
	}
	log := newLogger(c.Log, p.stderr)
	opened := &closers{}
	defer opened.close(log)
	examine, err := examineOf(c, opened, log)
	if err != nil {
		return x, err
	}
	return examine.Examine(ctx)
}

func (p *program) printExamination(x application.Examination, all bool) {
	right := 0
	for _, c := range x.Checks {
		if c.Verdict == application.VerdictRight {
			right++
		}
		if c.Verdict == application.VerdictRight && !all {
			continue
		}
		sayTo(p.stdout, "%s %s", p.paint(c.Verdict, 8), strings.Join(strings.Fields(c.Part+" "+c.Node+" "+c.Name), " "))
		sayTo(p.stdout, "         found:  %s", c.Found)
		sayTo(p.stdout, "         right:  %s", c.Right)
		if c.Verdict != application.VerdictRight {
			sayTo(p.stdout, "         why:    %s", c.Why)
			sayTo(p.stdout, "         change: %s", c.Change)
		}
	}
	sayTo(p.stdout, "%d wrong, %d unknown, %d notes, %d right", x.Wrong, x.Unknown, x.Notes, right)
}

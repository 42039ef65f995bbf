package bootstrap

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// documents are what people paste commands from.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"../README.md"}
	for _, pattern := range []string{"reference/*.md", "deploy/*.md", "deploy/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// shellLine is a command line of a document, in words.
type shellLine struct {
	where string
	words []string
}

var inlineCommand = regexp.MustCompile("`((?:\\./bin/)?seckill [a-z][^`]*|make [a-z][^`]*)`")

// shellLines are those of a document's sh blocks, and those within its text that begin with one of our commands.
func shellLines(t *testing.T, file string) (blocks, inline []shellLine) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	language, n := "", 0
	for line := range strings.Lines(string(text)) {
		n++
		where := fmt.Sprintf("%s:%d", file, n)
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			language = strings.TrimSpace(fence) // none: the end of a block, or the beginning of one that is no shell
			continue
		}
		if language == "sh" {
			if words := shellWords(line); len(words) > 0 {
				blocks = append(blocks, shellLine{where, words})
			}
			continue
		}
		for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
			inline = append(inline, shellLine{where, shellWords(m[1])})
		}
	}
	return blocks, inline
}

// shellWords splits a line as a shell does, as far as documents need it: quotes, and comments at the end.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == '#' && !begun:
			return words
		case unicode.IsSpace(r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

var (
	assignment  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	ownVariable = regexp.MustCompile(`\bSECKILL_[A-Z0-9_]*[A-Z0-9]\b`)
)

// command parts a line into its assignments and the command behind them.
func (l shellLine) command() (variables map[string]string, words []string) {
	variables, words = map[string]string{}, l.words
	if words[0] == "export" {
		words = words[1:]
	}
	for len(words) > 0 {
		m := assignment.FindStringSubmatch(words[0])
		if m == nil {
			break
		}
		variables[m[1]], words = m[2], words[1:]
	}
	return variables, words
}

func isOurs(word string) bool {
	return word == "seckill" || word == "./bin/seckill" || word == "bin/seckill"
}

func TestEveryCommandInTheDocumentsIsReal(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range documents(t) {
		blocks, inline := shellLines(t, file)
		for _, l := range append(blocks, inline...) {
			switch _, words := l.command(); {
			case len(words) == 0:
			case isOurs(words[0]):
				if err := realCommand(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", l.where, strings.Join(l.words, " "), err)
				}
			case words[0] == "make":
				for _, word := range words[1:] {
					form := `(?m)^` + regexp.QuoteMeta(word) + `:`
					if m := assignment.FindStringSubmatch(word); m != nil {
						form = `(?m)^` + m[1] + ` *[?:]?=`
					}
					if !regexp.MustCompile(form).Match(makefile) {
						t.Errorf("%s: the Makefile has no %s", l.where, word)
					}
				}
			case !slices.Contains([]string{"curl", "go", "git", "cd", "docker", "kubectl", "promtool"}, words[0]):
				t.Errorf("%s: %q is neither ours nor known", l.where, words[0])
			}
		}
	}
}

// realCommand says what of a command line seckill does not know.
func realCommand(args []string) error {
	root := Commands()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("there is no command %q", args)
	}
	return cmd.ParseFlags(rest)
}

func TestEveryVariableInTheDocumentsIsASetting(t *testing.T) {
	t.Parallel()
	known := []string{envFile}
	for _, s := range Settings() {
		known = append(known, s.Variable)
	}
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range ownVariable.FindAllString(string(text), -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s: %s is no setting", file, name)
			}
		}
	}
}

// needs says what a command line needs that a test on the embedded profile does not have; "" if it can be run.
func needs(words []string) string {
	line := strings.Join(words, " ")
	switch {
	case words[1] == "serve":
		return "runs until it is stopped; the tests of serve run it"
	case strings.Contains(line, "$TOKEN"), strings.Contains(line, "--plan ID"):
		return "a value of the reader's"
	case strings.Contains(line, "127.0.0.1:808"):
		return "a service on the default ports"
	}
	return ""
}

// smaller has a crowd fit a test.
func smaller(words []string) []string {
	if words[1] != "rehearse" {
		return words
	}
	words = append(slices.Clone(words), "--buyers", "60", "--units", "5")
	if slices.Contains(words, "--rate") {
		words = append(words, "--rate", "300")
	}
	return words
}

// mayEnd are the exit codes with which a command of the documents may end here, if not with 0 alone.
func mayEnd(words []string) []int {
	switch line := strings.Join(words, " "); {
	case strings.Contains(line, "--fail-if"):
		return []int{ExitFine, ExitThreshold} // how fast this machine is, is another matter
	case strings.Contains(line, "parked replay 0"):
		return []int{ExitFailed} // there is no such message
	}
	return []int{ExitFine}
}

func TestCommandsOfTheDocumentsRun(t *testing.T) {
	var online, offline []shellLine
	seen := map[string]bool{}
	for _, file := range documents(t) {
		blocks, _ := shellLines(t, file)
		for _, l := range blocks {
			_, words := l.command()
			line := strings.Join(words, " ")
			if len(words) < 2 || !isOurs(words[0]) || needs(words) != "" || seen[line] {
				continue
			}
			if seen[line] = true; words[1] == "migrate" { // takes the folder for itself
				offline = append(offline, l)
			} else {
				online = append(online, l)
			}
		}
	}
	if len(online) < 20 || len(offline) < 3 {
		t.Errorf("found %d and %d commands", len(online), len(offline))
	}
	t.Chdir(t.TempDir())
	c := embeddedConfig(t)
	c.Data = DefaultConfig().Data
	text, _, stop := serving(t, c, serveOptions{demo: true})
	if res, _ := paste(t, text); res.StatusCode != http.StatusAccepted {
		t.Error(res.Status)
	}
	for _, l := range online {
		runLine(t, l)
	}
	stop()
	for _, l := range offline {
		runLine(t, l)
	}
}

func runLine(t *testing.T, l shellLine) {
	t.Helper()
	variables, words := l.command()
	t.Run(strings.Join(words[1:], " "), func(t *testing.T) {
		for name, value := range variables {
			t.Setenv(name, value)
		}
		code, out, fault := run(smaller(words)[1:]...)
		if !slices.Contains(mayEnd(words), code) {
			t.Errorf("%s: exit code %d:\n%s%s", l.where, code, out, fault)
		}
	})
}

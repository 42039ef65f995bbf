package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// program is what every command shares: where it writes, and the settings that it was given.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	version        string
	configPath     string
	flags          map[string]string // setting → value, for the flags that name one
	output         string
	noColor        bool
	yes            bool // change things without a question
}

// Main runs the command that args name and gives the exit code. A first signal asks the
// command to end in order, a second one ends the process at once.
func Main(args []string, stdout, stderr io.Writer, version string) int {
	ctx, stop := interruptible(stderr)
	defer stop()
	p := &program{stdin: os.Stdin, stdout: stdout, stderr: stderr, version: version, flags: map[string]string{}}
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(err)
	if err != nil && !errors.Is(err, errViolation) && !errors.Is(err, errNotReady) {
		_, _ = fmt.Fprintln(stderr, "seckill:", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return code
}

func interruptible(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		sayTo(stderr, "seckill: a second signal: ending at once")
		os.Exit(ExitInterrupted)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// Commands is the tree of all commands, to be described and not to be run.
func Commands() *cobra.Command {
	return (&program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, version: "", flags: map[string]string{}}).rootCommand()
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "seckill",
		Short: "Sells few units to very many buyers within seconds, and loses nothing",
		Long: "seckill sells few units to very many buyers within seconds: never one twice, never one lost.\n\n" +
			"Settings come from defaults, an optional YAML file (--config), SECKILL_… variables and flags.\n" +
			"Exit codes: 0 fine, 1 failed, 2 usage or settings, 3 a dependency is not reachable,\n" +
			"4 an invariant is broken or a difference was found, 5 a threshold was missed, 130 interrupted.",
		SilenceErrors: true, SilenceUsage: true,
		Version: p.version,
	}
	root.SetVersionTemplate("seckill {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withExit(ExitUsage, err) })
	root.PersistentFlags().StringVar(&p.configPath, "config", "", "settings file (YAML)")
	p.settingFlag(root, "profile", "profile", "embedded or stack")
	p.settingFlag(root, "data", "data", "folder of the embedded profile")
	root.PersistentFlags().BoolVar(&p.noColor, "no-color", false, "no colour (as NO_COLOR, TERM=dumb and no terminal)")
	root.AddCommand(p.serveCommand(), p.migrateCommand(), p.reconcileCommand(), p.verifyCommand(), p.doctorCommand(), p.parkedCommand(),
		p.productsCommand(), p.ordersCommand(), p.traceCommand(), p.rehearseCommand(), p.tokenCommand(), p.configCommand(),
		p.healthcheckCommand(), p.versionCommand())
	refuseStrayArguments(root)
	p.addCompletion(root)
	return root
}

// refuseStrayArguments makes every wrong word a usage error; a command that only has others shows them.
func refuseStrayArguments(cmd *cobra.Command) {
	if cmd.HasSubCommands() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return withExit(ExitUsage, fmt.Errorf("there is no command %q of %s", args[0], cmd.CommandPath()))
			}
			return cmd.Help()
		}
	}
	for _, c := range cmd.Commands() {
		refuseStrayArguments(c)
		args := c.Args
		if args == nil {
			args = cobra.NoArgs
		}
		c.Args = func(cmd *cobra.Command, a []string) error { return withExit(ExitUsage, args(cmd, a)) }
	}
}

// settingFlag adds a flag that stands for a setting.
func (p *program) settingFlag(cmd *cobra.Command, flag, key, usage string) {
	cmd.PersistentFlags().Func(flag, usage, func(v string) error {
		p.flags[key] = v
		return nil
	})
}

func (p *program) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.output, "output", "o", outputText, "text, json or jsonl (one value a line)")
}

// yesFlag is for a command that changes something and asks before it does.
func (p *program) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.yes, "yes", false, "do not ask; needed where there is no terminal")
}

func (p *program) checkOutput() error {
	switch p.output {
	case outputText, outputJSON, outputLines:
		return nil
	}
	return withExit(ExitUsage, fmt.Errorf("--output: %q is neither text, json nor jsonl", p.output))
}

// The forms of what a command prints.
const (
	outputText  = "text"
	outputJSON  = "json"
	outputLines = "jsonl"
)

// config loads the settings; a mistake in them is a usage error.
func (p *program) config() (Config, error) {
	c, err := LoadConfig(p.configPath, Environ(), p.flagSettings())
	return c, withExit(ExitUsage, err)
}

func (p *program) flagSettings() map[string]any {
	flags := make(map[string]any, len(p.flags))
	for k, v := range p.flags {
		flags[k] = v
	}
	return flags
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Example: "  seckill version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.stdout, "seckill", p.version)
			return err
		}}
}

package bootstrap

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (p *program) configCommand() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use: "config", Short: "Show the settings, and where each value comes from",
		Long: "Shows every setting with its effective value and its origin: default, file, environment or flag, later\n" +
			"over earlier. Secrets are hidden. Mistakes are listed below, with exit code 2.\n" +
			"With --schema it shows every key with its type, default and meaning instead.",
		Example: "  seckill config\n  seckill config --schema\n  SECKILL_HTTP__ADDR=127.0.0.1:9090 seckill config -o jsonl",
		RunE: func(*cobra.Command, []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if schema {
				return p.printSchema()
			}
			s, mistakes := readSettings(p.configPath, Environ(), p.flagSettings())
			if err := p.printEffective(s.effective()); err != nil {
				return err
			}
			return withExit(ExitUsage, mistakes)
		},
	}
	p.outputFlag(cmd)
	cmd.Flags().BoolVar(&schema, "schema", false, "every key with its type, default and meaning")
	return cmd
}

func (p *program) printEffective(all []effectiveSetting) error {
	return p.print(all, func() {
		t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		for _, e := range all {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", e.Key, e.Value, e.Origin)
		}
		_ = t.Flush()
	})
}

func (p *program) printSchema() error {
	all := Settings()
	return p.print(all, func() {
		for _, s := range all {
			def := s.Default
			if def == "" {
				def = "empty"
			}
			sayTo(p.stdout, "%s  (%s, default %s)\n    %s\n    %s", s.Key, s.Type, def, s.Meaning, s.Variable)
		}
	})
}

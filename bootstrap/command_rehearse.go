package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"seckill/bootstrap/rehearse"
)

func (p *program) rehearseCommand() *cobra.Command {
	var door doorFlags
	var failIf []string
	r := rehearse.Config{}
	cmd := &cobra.Command{
		Use: "rehearse", Short: "Try a sale out: a crowd, then the books",
		Long: "Puts fresh products on sale, lets a crowd of buyers in, waits until every row is written,\n" +
			"and judges the invariants A to E, with what each buyer was told. Exit code 4 on a violation,\n" +
			"5 where a threshold was missed: a percentile of the accepted (p50 p95 p99 p99.9 max) or of others (refused.p99,\n" +
			"repeat.p99, confirmed.p99 from deduction to row) or drained, against a time; accepted, refused, unknown or rate against\n" +
			"a number. Refusals are counted apart from sales.\n" +
			"Without --target it asks the embedded service that runs on this machine, or starts one of its own.",
		Example: "  seckill rehearse --buyers 5000 --units 500\n" +
			"  seckill rehearse --buyers 20000 --units 1000 --rate 2000 -o json\n" +
			"  seckill rehearse --rate 2000 --fail-if 'p99>250ms' --fail-if 'unknown>0' --html report.html\n" +
			"  seckill rehearse --target http://127.0.0.1:8080 --admin http://127.0.0.1:8081",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			for _, rule := range failIf {
				t, err := rehearse.ParseThreshold(rule)
				if err != nil {
					return withExit(ExitUsage, fmt.Errorf("--fail-if: %w", err))
				}
				r.FailIf = append(r.FailIf, t)
			}
			r.Output, r.Plain = p.output, dumbTerminal()
			r.Paint = func(verdict string) string { return p.paint(verdict, 0) }
			return p.rehearse(cmd.Context(), c, &door, r)
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&r.Target, "target", "", "buyers' door of a running service, with scheme (then --admin, too)")
	f.IntVar(&r.Buyers, "buyers", 5000, "distinct buyers")
	f.Int64Var(&r.Units, "units", 500, "units of each product")
	f.IntVar(&r.Products, "products", 1, "products on sale")
	f.Float64Var(&r.Repeats, "repeats", 0.05, "share of buyers that ask again with the same token")
	f.IntVar(&r.Connections, "connections", 0, "closed loop: so many buyers at a time (50 where neither is given)")
	f.Float64Var(&r.Rate, "rate", 0, "open loop: so many buyers a second, latency from the planned time")
	f.DurationVar(&r.Settle, "settle", time.Minute, "how long everything may take to be settled after the load")
	f.StringArrayVar(&failIf, "fail-if", nil, "a threshold, such as 'p99>250ms'; may be repeated")
	f.StringVar(&r.HTMLPath, "html", "", "file for the report as a page")
	f.StringVar(&r.JournalPath, "journal", "", "file for what each buyer was told (JSON lines)")
	return cmd
}

func (p *program) rehearse(ctx context.Context, c Config, door *doorFlags, r rehearse.Config) error {
	tokens, err := tokensOf(c)
	if err != nil {
		return err
	}
	r.BuyerToken = func(sub string) (string, error) { return tokens.Issue(sub, buyerScopes, time.Hour) }
	if r.OperatorToken, err = tokens.Issue("rehearsal", operatorScopes, time.Hour); err != nil {
		return err
	}
	if door.token != "" {
		r.OperatorToken = door.token
	}
	switch {
	case r.Target != "" && door.admin != "":
		r.Admin = door.admin
	case r.Target != "" || door.admin != "":
		return withExit(ExitUsage, fmt.Errorf("--target and --admin go together"))
	default:
		client, err := door.client(ctx, c)
		if err != nil {
			return err
		}
		if client == nil {
			return p.rehearseAlone(ctx, c, r)
		}
		run, err := readRunFile(c.Data)
		if err != nil {
			return err
		}
		r.Target, r.Admin = run.Buyers, run.Operators
	}
	return p.runRehearsal(ctx, r)
}

func (p *program) runRehearsal(ctx context.Context, r rehearse.Config) error {
	report, err := rehearse.Run(ctx, r, p.stdout, p.stderr)
	if report.Violations() { // also beside an error: what was found stands
		return errViolation
	}
	if err == nil && report.Missed() {
		return withExit(ExitThreshold, errors.New("a threshold was missed; see above"))
	}
	return err
}

// rehearseAlone starts a service on free ports, an embedded one in a folder of its own, and stops it afterwards.
func (p *program) rehearseAlone(ctx context.Context, c Config, r rehearse.Config) error {
	if c.Embedded() {
		folder, err := os.MkdirTemp("", "seckill-rehearsal-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		key, err := folderKey(c.Data) // the tokens were signed with it
		if err != nil {
			return err
		}
		c.Data, c.Auth.Key = filepath.Join(folder, "data"), key
	}
	c.HTTP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0"
	c.Log.Level = "warn"
	app, err := NewApp(c, newLogger(c.Log, p.stderr))
	if err != nil {
		return err
	}
	defer app.Close()
	if err := app.Start(ctx); err != nil {
		return err
	}
	r.Target, r.Admin = app.BuyersURL(), app.OperatorsURL()
	rehearsed := p.runRehearsal(ctx, r)
	if err := app.Stop(); err != nil && rehearsed == nil {
		return err
	}
	return rehearsed
}

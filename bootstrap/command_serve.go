package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// serveOptions are the flags of serve that are no settings; all are for the embedded profile.
type serveOptions struct {
	demo  bool // put a demo product on sale
	fresh bool // forget what was sold before
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Sell, until a signal says stop",
		Example: "  seckill serve --demo                # embedded: nothing to install, data in .seckill\n" +
			"  seckill serve --demo --fresh        # the same from the beginning\n" +
			"  seckill serve --profile stack --listen :8080   # with SECKILL_REDIS__ADDRS and so on",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.config()
			if err != nil {
				return err
			}
			if (o.demo || o.fresh) && !c.Embedded() {
				return withExit(ExitUsage, errors.New("--demo and --fresh are for the embedded profile only"))
			}
			return p.serve(cmd.Context(), c, o)
		},
	}
	p.settingFlag(cmd, "listen", "http.addr", "address of the buyers' door (port 0: any free one)")
	p.settingFlag(cmd, "admin-listen", "admin.addr", "address of the operators' door (port 0: any free one)")
	cmd.Flags().BoolVar(&o.demo, "demo", false, "put a demo product on sale (embedded profile)")
	cmd.Flags().BoolVar(&o.fresh, "fresh", false, "forget what was sold before (embedded profile)")
	return cmd
}

// collectAt lets the heap grow to five times of what lives before it is collected. What lives is small and bounded (some
// tens of megabytes), so this is paid in memory that a server has, for about a tenth of the work of a sale.
const collectAt = 400

func (p *program) serve(ctx context.Context, c Config, o serveOptions) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if err := portsFree(ctx, c); err != nil {
		return err
	}
	if o.fresh {
		if err := startOver(c.Data); err != nil {
			return err
		}
	}
	app, err := NewApp(c, newLogger(c.Log, p.stderr), fx.Supply(Version(p.version), Demo(o.demo)))
	if err != nil {
		return err
	}
	defer app.Close()
	if err := app.Start(ctx); err != nil {
		return err
	}
	if err := errors.Join(leaveRunFile(app), p.announce(ctx, app, o.demo)); err != nil {
		return err
	}
	<-ctx.Done()
	return app.Stop()
}

// leaveRunFile lets commands on this machine find an embedded service, while it runs.
func leaveRunFile(app *App) error {
	c := app.config
	if !c.Embedded() {
		return nil
	}
	token, err := app.Tokens.Issue("operator", operatorScopes, 30*24*time.Hour)
	if err != nil {
		return err
	}
	run := RunFile{PID: os.Getpid(), Buyers: app.BuyersURL(), Operators: app.OperatorsURL(), Token: token}
	if err := writeRunFile(c.Data, run); err != nil {
		return err
	}
	app.onClose(func() error { removeRunFile(c.Data); return nil })
	return nil
}

func (p *program) say(format string, args ...any) { sayTo(p.stderr, format, args...) }

func sayTo(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

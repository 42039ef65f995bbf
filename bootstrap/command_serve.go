package bootstrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"seckill/application/port"
	"seckill/domain"
)

const (
	demoProduct = "demo-phone"
	demoUnits   = 100
	demoLimit   = 2
	demoBuyer   = "alice"
	demoTTL     = 24 * time.Hour
)

func (p *program) serveCommand() *cobra.Command {
	var demo bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Sell, until a signal says stop",
		Example: "  seckill serve                       # embedded: nothing to install, data in .seckill\n" +
			"  seckill serve --profile stack --listen :8080   # with SECKILL_REDIS__ADDRS and so on",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.config()
			if err != nil {
				return err
			}
			if demo && !c.Embedded() {
				return withExit(ExitUsage, fmt.Errorf("--demo is for the embedded profile only"))
			}
			return p.serve(cmd.Context(), c, demo)
		},
	}
	p.settingFlag(cmd, "listen", "http.addr", "address of the buyers' door (port 0: any free one)")
	p.settingFlag(cmd, "admin-listen", "admin.addr", "address of the operators' door (port 0: any free one)")
	cmd.Flags().BoolVar(&demo, "demo", false, "put a demo product on sale (embedded profile)")
	return cmd
}

// collectAt lets the heap grow to five times of what lives before it is collected. What lives is small and bounded (some
// tens of megabytes), so this is paid in memory that a server has, for about a tenth of the work of a sale.
const collectAt = 400

func (p *program) serve(ctx context.Context, c Config, demo bool) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	app, err := NewApp(c, newLogger(c.Log, p.stderr), fx.Supply(Version(p.version)))
	if err != nil {
		return err
	}
	defer app.Close()
	if err := app.Start(ctx); err != nil {
		return err
	}
	if err := p.announce(ctx, app, demo); err != nil {
		return err
	}
	<-ctx.Done()
	return app.Stop()
}

// announce says where the doors are, and leaves the run file for commands on this machine.
func (p *program) announce(ctx context.Context, app *App, demo bool) error {
	c := app.config
	if c.Embedded() {
		token, err := app.Tokens.Issue("operator", operatorScopes, 30*24*time.Hour)
		if err != nil {
			return err
		}
		run := RunFile{PID: os.Getpid(), Buyers: app.BuyersURL(), Operators: app.OperatorsURL(), Token: token}
		if err := writeRunFile(c.Data, run); err != nil {
			return err
		}
		app.onClose(func() error { removeRunFile(c.Data); return nil })
	}
	data := ""
	if c.Embedded() {
		data = "   data " + c.Data
	}
	p.say("seckill %s   profile %s%s", p.version, c.Profile, data)
	p.say("buyers %s", app.BuyersURL())
	p.say("operators %s", app.OperatorsURL())
	if !demo {
		return nil
	}
	return p.announceDemo(ctx, app)
}

func (p *program) announceDemo(ctx context.Context, app *App) error {
	sale, err := domain.NewSale(demoProduct, demoUnits, time.Time{}, time.Time{}, demoLimit)
	if err != nil {
		return err
	}
	if _, _, err := app.OpenSale.Open(ctx, sale, port.Audit{Actor: "system", Action: "open-sale", Reason: "demo"}); err != nil {
		return err
	}
	token, err := app.Tokens.Issue(demoBuyer, buyerScopes, demoTTL)
	if err != nil {
		return err
	}
	p.say("demo product %s: %d units, at most %d a buyer\n", demoProduct, demoUnits, demoLimit)
	p.say("token of the demo buyer %s:\n  %s\n", demoBuyer, token)
	p.say("buy one:\n  curl -i -X POST %s/api/v1/products/%s/orders -H 'Authorization: Bearer %s' "+
		"-H 'Idempotency-Key: try-1' -H 'Content-Type: application/json' -d '{\"quantity\":1}'\n", app.BuyersURL(), demoProduct, token)
	p.say("a crowd, in a second terminal:\n  ./bin/seckill rehearse --buyers 5000 --units 500\n")
	p.say("stop with Ctrl-C; what was sold is kept in %s", app.config.Data)
	return nil
}

func (p *program) say(format string, args ...any) { sayTo(p.stderr, format, args...) }

func sayTo(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

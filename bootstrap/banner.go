package bootstrap

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// The demo product, and the buyer whose token the banner shows.
const (
	demoProduct = "demo-phone"
	demoUnits   = 100
	demoLimit   = 2
	demoBuyer   = "alice"
	demoTTL     = 24 * time.Hour
)

// Demo says that a service has a demo product and demo tokens, and so a console that buys.
type Demo bool

const consoleLinkTTL = 30 * time.Minute

// announce says where the doors are: to people by the banner, on a terminal or from an embedded service;
// to programs, wherever stderr is no terminal, by one event whatever the log's level.
func (p *program) announce(ctx context.Context, app *App, demo bool) error {
	c, terminal := app.config, isTerminal(p.stderr)
	var sale domain.Stock
	if demo {
		var err error
		if sale, err = openDemo(ctx, app); err != nil {
			return err
		}
	}
	if terminal || c.Embedded() {
		if err := p.banner(app, sale); err != nil {
			return err
		}
	}
	if !terminal {
		newLogger(LogConfig{Level: "info", Format: c.Log.Format}, p.stderr).LogAttrs(ctx, slog.LevelInfo, "both doors are open",
			slog.String("event", "serving"), slog.String("version", p.version), slog.String("profile", c.Profile),
			slog.String("buyers", app.BuyersURL()), slog.String("operators", app.OperatorsURL()))
	}
	return nil
}

// openDemo puts the demo product on sale, or finds the one of an earlier run as it now is.
func openDemo(ctx context.Context, app *App) (domain.Stock, error) {
	sale, err := domain.NewSale(demoProduct, demoUnits, time.Time{}, time.Time{}, demoLimit)
	if err != nil {
		return domain.Stock{}, err
	}
	stock, _, err := app.OpenSale.Open(ctx, sale, port.Audit{Actor: "system", Action: "open-sale", Reason: "demo"})
	return stock, err
}

// banner is what a person reads first. sale is the demo product; none where it is zero.
func (p *program) banner(app *App, sale domain.Stock) error {
	c := app.config
	data := ""
	if c.Embedded() {
		data = "   data " + c.Data + " (kept between runs; --fresh to start over)"
	}
	p.say("seckill %s  profile %s%s", p.version, c.Profile, data)
	p.say("  Buyers    %s/docs   (API and its description)", app.BuyersURL())
	operators, hint := app.OperatorsURL()+"/console", "its sign-in page says how to get in"
	if !sale.IsZero() || isTerminal(p.stderr) { // else a log keeps it
		var err error
		if operators, err = app.ConsoleLink(consoleLinkTTL); err != nil {
			return err
		}
		hint = "signed-in link, 30 min, printed once"
	}
	p.say("  Operators %s   (%s; metrics at /metrics)", operators, hint)
	if !sale.IsZero() {
		if err := p.bannerDemo(app, sale); err != nil {
			return err
		}
	}
	if c.Embedded() {
		p.say("A crowd:  %s rehearse --buyers 5000 --rate 2000   (2nd terminal; the console shows it live)", commandHere(c))
	}
	warning := ""
	if !sale.IsZero() {
		warning = " Nothing here is for production: demo tokens are on (profile embedded only)."
	}
	p.say("Stop with Ctrl-C.%s", warning)
	return nil
}

func (p *program) bannerDemo(app *App, sale domain.Stock) error {
	token, err := app.Tokens.Issue(demoBuyer, buyerScopes, demoTTL)
	if err != nil {
		return err
	}
	p.say("  Demo      product %s: %d of %d units left, at most %d per buyer, %s now", sale.Product(), sale.Remaining(), sale.Total(),
		demoLimit, sale.State())
	p.say("Buy one:")
	p.say("  curl -i -X POST %s/api/v1/products/%s/orders \\", strings.TrimPrefix(app.BuyersURL(), "http://"), sale.Product())
	p.say("    -H \"Authorization: Bearer %s\" -H \"Idempotency-Key: try-1\" -H \"Content-Type: application/json\" -d '{\"quantity\":1}'", token)
	return nil
}

// commandHere is how a shell in this folder calls this very program for the same data.
func commandHere(c Config) string {
	words := []string{programHere()}
	if c.Data != DefaultConfig().Data {
		words = append(words, "--data", c.Data)
	}
	for i, w := range words {
		if strings.ContainsAny(w, " \t\"'\\$&;|<>()*?`#~!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// programHere is the running binary: by its name where the shell's path leads to it, else from this folder, else in full.
func programHere() string {
	self, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	if found, err := exec.LookPath(filepath.Base(self)); err == nil && found == self {
		return filepath.Base(self)
	}
	if here, err := os.Getwd(); err == nil {
		if near, err := filepath.Rel(here, self); err == nil && filepath.IsLocal(near) {
			return "./" + near
		}
	}
	return self
}

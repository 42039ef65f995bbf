package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"seckill/adapters/doorclient"
	"seckill/application"
	"seckill/domain"
)

// productsPage is how many products are asked for in one call.
const productsPage = 100

func (p *program) productsCommand() *cobra.Command {
	var door doorFlags
	cmd := &cobra.Command{
		Use: "products [ID]", Short: "Show what is on sale, both sides of it",
		Long: "Shows one product, or all: what the gate has left, what the ledger has, what is in flight between them and\n" +
			"how far they differ. ? is what could not be read, or what cannot be said while anything moves.\n" +
			"Asks a running service; where none is known it opens the servers, or the data folder, itself.",
		Example: "  seckill products\n  seckill products demo-phone\n  seckill products -o jsonl",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			views, err := p.products(cmd.Context(), c, &door, args)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return p.print(views[0], func() { p.printProducts(views) })
			}
			return p.print(views, func() { p.printProducts(views) })
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	return cmd
}

// products gives one product, or page by page all of them.
func (p *program) products(ctx context.Context, c Config, door *doorFlags, ids []string) (views []application.StockView, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return productsOf(
			func(id string) (application.StockView, error) {
				return readAnswer[application.StockView](client.ShowStock(ctx, id))
			},
			func(after string) ([]application.StockView, error) { return client.products(ctx, after) }, ids)
	}
	err = p.withTools(ctx, c, func(app *App) error {
		views, err = productsOf(
			func(id string) (application.StockView, error) { return app.Stock.Show(ctx, id) },
			func(after string) ([]application.StockView, error) { return app.Stock.List(ctx, after, productsPage) }, ids)
		return err
	})
	return views, err
}

func productsOf(one func(id string) (application.StockView, error), page func(after string) ([]application.StockView, error),
	ids []string) ([]application.StockView, error) {
	views := []application.StockView{}
	for _, id := range ids {
		v, err := one(id)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	for after := ""; len(ids) == 0; {
		found, err := page(after)
		if err != nil {
			return nil, err
		}
		if views = append(views, found...); len(found) < productsPage {
			break
		}
		after = found[len(found)-1].Product
	}
	return views, nil
}

// products is one page of them, in order of id.
func (d *doorClient) products(ctx context.Context, after string) ([]application.StockView, error) {
	page, err := readAnswer[struct{ Items []application.StockView }](
		d.ListStocks(ctx, &doorclient.ListStocksParams{Limit: given(productsPage), Cursor: given(after)}))
	return page.Items, err
}

func (p *program) printProducts(views []application.StockView) {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PRODUCT\tSTATE\tON SALE\tCONFIRMED\tIN FLIGHT\tGATE LEFT\tLEDGER LEFT\tDRIFT")
	for _, v := range views {
		state, gate, ledger := v.State, "?", "?"
		if v.Paused {
			state += ", paused"
		}
		if v.Gate != nil {
			gate = strconv.FormatInt(v.Gate.Remaining, 10)
		}
		if v.Ledger != nil {
			ledger = strconv.FormatInt(v.Ledger.Stock, 10)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", v.Product, state, v.Total, orUnread(v.Confirmed), orUnread(v.InFlight),
			gate, ledger, orUnread(v.Drift))
	}
	_ = t.Flush()
}

func orUnread(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

func (p *program) traceCommand() *cobra.Command {
	var door doorFlags
	cmd := &cobra.Command{
		Use: "trace PRODUCT USER TOKEN", Short: "Follow one purchase through gate, broker and ledger",
		Long: "Shows each step of one purchase with its time and the gap to the step before, what is missing, and what will\n" +
			"happen next. Asks a running service; where none is known it opens the servers, or the data folder, itself.",
		Example: "  seckill trace demo-phone alice try-1\n  seckill trace demo-phone alice try-1 -o json",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			key, err := domain.NewKey(args[0], args[1], args[2])
			if err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			v, err := p.trace(cmd.Context(), c, &door, key)
			if err != nil {
				return err
			}
			return p.print(v, func() { p.printTrace(v) })
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	return cmd
}

func (p *program) trace(ctx context.Context, c Config, door *doorFlags, key domain.Key) (v application.TraceView, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return v, err
	}
	if client != nil {
		return readAnswer[application.TraceView](client.TracePurchase(ctx,
			&doorclient.TracePurchaseParams{ProductID: key.Product(), UID: key.User(), Token: key.Token()}))
	}
	err = p.withTools(ctx, c, func(app *App) error {
		v, err = app.Trace.Trace(ctx, key)
		return err
	})
	return v, err
}

func (p *program) printTrace(v application.TraceView) {
	sayTo(p.stdout, "%s %s %s: %s, %s units", v.Product, v.User, v.Token, v.Status, orUnread(v.Quantity))
	var before time.Time
	for _, s := range v.Steps {
		at, gap := "-", ""
		if s.At != nil {
			at = s.At.UTC().Format("15:04:05.000")
			if !before.IsZero() {
				gap = fmt.Sprintf("%+d ms", s.At.Sub(before).Milliseconds())
			}
			before = *s.At
		}
		sayTo(p.stdout, "  %-12s  %10s  %s  %-10s  %-6s  %s", at, gap, p.paint(string(s.State), 8), s.Step, s.Source, s.Detail)
	}
	for _, part := range v.Unread {
		sayTo(p.stdout, "not read: %s", part)
	}
	sayTo(p.stdout, "next: %s", v.Next)
}

func (p *program) ordersCommand() *cobra.Command {
	var target, token, user string
	cmd := &cobra.Command{
		Use: "orders PRODUCT TOKEN", Short: "Show an order as its buyer sees it",
		Long: "Asks the buyers' door for the order that a buyer placed with a token (its Idempotency-Key). An order belongs to its\n" +
			"buyer, so say who asks: --user where this machine holds the signing key, else the buyer's own bearer token by --token.\n" +
			"Operators follow any purchase with `seckill trace`.",
		Example: "  seckill orders demo-phone try-1 --user alice\n" +
			"  seckill orders demo-phone try-1 --target http://127.0.0.1:8080 --token $TOKEN -o json",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if (user == "") == (token == "") {
				return withExit(ExitUsage, errors.New("say who asks: --user, or --token with the buyer's bearer token"))
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			o, err := p.order(cmd.Context(), c, target, token, user, args)
			if err != nil {
				return err
			}
			return p.print(o, func() {
				sayTo(p.stdout, "%s %s %s: %d units, %s, since %s", o.Product, o.User, o.Token, o.Quantity, p.paint(o.Status, 0), o.CreatedAt)
			})
		},
	}
	p.outputFlag(cmd)
	cmd.Flags().StringVar(&target, "target", "", "buyers' door of a running service, with scheme")
	cmd.Flags().StringVar(&token, "token", "", "the buyer's bearer token")
	cmd.Flags().StringVar(&user, "user", "", "the buyer; a token is signed for the call")
	return cmd
}

// buyersOrder is an order as the buyers' door shows it.
type buyersOrder struct {
	Product   string `json:"productId"`
	User      string `json:"userId"`
	Token     string `json:"token"`
	Quantity  int64  `json:"quantity"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt,omitempty"`
}

func (p *program) order(ctx context.Context, c Config, target, token, user string, args []string) (o buyersOrder, err error) {
	if target == "" {
		if target, err = buyersDoorOf(c); err != nil {
			return o, err
		}
	}
	if token == "" {
		tokens, err := tokensOf(c)
		if err != nil {
			return o, err
		}
		if token, err = tokens.Issue(user, buyerScopes, time.Minute); err != nil {
			return o, err
		}
	}
	client, err := newDoorClient(target, token)
	if err != nil {
		return o, err
	}
	return readAnswer[buyersOrder](client.ShowOrder(ctx, args[0], args[1], nil))
}

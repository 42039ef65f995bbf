package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/adapters/doorclient"
	"seckill/application"
	"seckill/application/port"
)

// parkedPage is how many messages are asked for in one call.
const parkedPage = 200

func (p *program) parkedCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "parked", Short: "Messages that could not be applied: list them, replay them",
		Example: "  seckill parked list\n  seckill parked replay --reason unknown-product --product demo-phone --yes"}
	cmd.AddCommand(p.parkedListCommand(), p.parkedReplayCommand())
	return cmd
}

// parkedMessage is one message as the command shows it.
type parkedMessage struct {
	ID        string          `json:"id"`
	Reason    port.ParkReason `json:"reason"`
	Detail    string          `json:"detail"`
	Product   string          `json:"productId,omitempty"`
	Body      string          `json:"body"`
	BodyBytes int             `json:"bodyBytes"`
	ParkedAt  time.Time       `json:"parkedAt"`
}

func (p *program) parkedListCommand() *cobra.Command {
	var door doorFlags
	var wish listWish
	cmd := &cobra.Command{
		Use: "list", Short: "List what waits, newest first",
		Example: "  seckill parked list\n  seckill parked list --reason poison --product demo-phone --most 20 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if wish.most < 1 {
				return withExit(ExitUsage, fmt.Errorf("--most: %d is not a positive number", wish.most))
			}
			if wish.reason != "" && !slices.Contains(port.ParkReasons, port.ParkReason(wish.reason)) {
				return withExit(ExitUsage, fmt.Errorf("--reason: %q is no reason that a message is parked for; they are %v", wish.reason, port.ParkReasons))
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			messages, err := p.listParked(cmd.Context(), c, &door, wish)
			if err != nil {
				return err
			}
			return p.print(messages, func() {
				for _, m := range messages {
					sayTo(p.stdout, "%s  %s  %-15s %s  %s  (%d bytes)", m.ID, m.ParkedAt.Format(time.RFC3339), m.Reason, m.Product, m.Detail, m.BodyBytes)
				}
				sayTo(p.stdout, "%d listed", len(messages))
			})
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	cmd.Flags().IntVar(&wish.most, "most", 1000, "list at most so many")
	cmd.Flags().StringVar(&wish.reason, "reason", "", "only what was parked for this reason")
	cmd.Flags().StringVar(&wish.product, "product", "", "only of this product")
	return cmd
}

// listWish says which messages are to be listed.
type listWish struct {
	reason, product string
	most            int
}

func (p *program) listParked(ctx context.Context, c Config, door *doorFlags, wish listWish) (messages []parkedMessage, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return nil, err
	}
	messages = []parkedMessage{}
	collect := func(page func(before string, limit int) ([]parkedMessage, error)) error {
		for before := ""; len(messages) < wish.most; {
			limit := min(parkedPage, wish.most-len(messages))
			found, err := page(before, limit)
			if err != nil {
				return err
			}
			if messages = append(messages, found...); len(found) < limit {
				return nil
			}
			before = found[len(found)-1].ID
		}
		return nil
	}
	if client != nil {
		return messages, collect(func(before string, limit int) ([]parkedMessage, error) {
			page, err := readAnswer[struct{ Items []parkedMessage }](
				client.ListParked(ctx, &doorclient.ListParkedParams{Limit: given(limit), Cursor: given(before),
					Reason: given(doorclient.ParkReason(wish.reason)), ProductID: given(wish.product)}))
			return page.Items, err
		})
	}
	err = p.withTools(ctx, c, func(app *App) error {
		return collect(func(before string, limit int) ([]parkedMessage, error) {
			found, err := app.Parked.List(ctx, port.ParkReason(wish.reason), wish.product, before, limit)
			page := make([]parkedMessage, len(found))
			for i, m := range found {
				page[i] = parkedMessage{m.ID, m.Reason, m.Detail, m.Product,
					strings.ToValidUTF8(string(m.Body[:min(len(m.Body), 1024)]), "\uFFFD"), len(m.Body), m.ParkedAt}
			}
			return page, err
		})
	})
	return messages, err
}

// replayWish says which messages are to be replayed.
type replayWish struct {
	ids             []string
	reason, product string
	why             string
}

func (p *program) parkedReplayCommand() *cobra.Command {
	var door doorFlags
	var wish replayWish
	cmd := &cobra.Command{
		Use: "replay [ID…]", Short: "Try parked messages again, once what was wrong is put right",
		Long: "Tries parked messages again from their copies in the database: those named, or all of a reason and a product.\n" +
			"Nothing is applied twice, whoever else replays. Ends with 1 when some are still parked; why is told of each.",
		Example: "  seckill parked replay 0190f3c2b7a27e0c8d5a5f0c2d1e3b4a --yes\n" +
			"  seckill parked replay --reason unknown-product --product demo-phone --yes",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			wish.ids = args
			if matching := wish.reason != "" || wish.product != ""; matching == (len(args) > 0) {
				return withExit(ExitUsage, fmt.Errorf("name messages by their ids, or by --reason and --product"))
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			if err := p.confirmed(cmd.Context(), "This applies parked messages again"); err != nil {
				return err
			}
			results, err := p.replayParked(cmd.Context(), c, &door, wish)
			if err != nil {
				return err
			}
			return p.tellReplay(results)
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	p.yesFlag(cmd)
	cmd.Flags().StringVar(&wish.reason, "reason", "", "all that were parked for this reason")
	cmd.Flags().StringVar(&wish.product, "product", "", "all of this product")
	cmd.Flags().StringVar(&wish.why, "why", "", "goes to the audit row")
	return cmd
}

func (p *program) tellReplay(results []application.ReplayResult) error {
	left := 0
	for _, r := range results {
		if r.Outcome != application.ReplayDone {
			left++
		}
	}
	err := p.print(results, func() {
		for _, r := range results {
			sayTo(p.stdout, "%s  %-9s %-15s %s", r.ID, r.Outcome, r.Reason, r.Detail)
		}
		sayTo(p.stdout, "%d replayed, %d left", len(results)-left, left)
	})
	if err == nil && left > 0 {
		err = withExit(ExitFailed, fmt.Errorf("%d of %d messages were not replayed", left, len(results)))
	}
	return err
}

func (p *program) replayParked(ctx context.Context, c Config, door *doorFlags, wish replayWish) (results []application.ReplayResult, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return wish.run(func(ids []string, after string) (some []application.ReplayResult, next string, err error) {
			answer, err := readAnswer[struct {
				Items []application.ReplayResult
				Next  string
			}](client.ReplayParkedSome(ctx, wish.body(ids, after)))
			return answer.Items, answer.Next, err
		})
	}
	audit := port.Audit{Actor: "command", Action: "replay-parked", Reason: wish.why}
	err = p.withTools(ctx, c, func(app *App) error {
		results, err = wish.run(func(ids []string, after string) (some []application.ReplayResult, next string, err error) {
			if len(ids) > 0 {
				some, err = app.Replay.ReplayThese(ctx, ids, audit)
				return some, "", err
			}
			return app.Replay.ReplayMatching(ctx, port.ParkReason(wish.reason), wish.product, after, audit)
		})
		return err
	})
	return results, err
}

func (w replayWish) body(ids []string, after string) doorclient.ReplayRequest {
	body := doorclient.ReplayRequest{Reason: given(doorclient.ReplayRequestReason(w.reason)), ProductID: given(w.product),
		After: given(after), Why: given(w.why)}
	if len(ids) > 0 {
		body.Ids = &ids
	}
	return body
}

// run replays page by page.
func (w replayWish) run(page func(ids []string, after string) ([]application.ReplayResult, string, error)) ([]application.ReplayResult, error) {
	results := []application.ReplayResult{}
	ids, after := w.ids, ""
	for {
		some := ids[:min(len(ids), 100)]
		found, next, err := page(some, after)
		if err != nil {
			return results, err
		}
		results = append(results, found...)
		ids, after = ids[len(some):], next
		if len(ids) == 0 && after == "" {
			return results, nil
		}
	}
}

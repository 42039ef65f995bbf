package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// WatchConfig bounds a watch.
type WatchConfig struct {
	Pause        time.Duration // between rounds
	RoundMax     time.Duration // a round's time
	PageMax      int           // products in one look
	SuspendedMax time.Duration // a product suspended for longer is taken up, in case its rebuilder is gone
}

// DefaultWatchConfig looks at every product each second.
func DefaultWatchConfig() WatchConfig {
	return WatchConfig{Pause: time.Second, RoundMax: 10 * time.Second, PageMax: 500, SuspendedMax: 10 * time.Second}
}

// WatchGates compares every product's gate with the ledger each second, so that a gate which has
// forgotten something is noticed though nobody asks for the product, and what a dead instance
// left half done is finished.
type WatchGates struct {
	*beat
	catalog  port.Catalog
	epochs   port.Epochs
	gate     port.GateAdmin
	suspects Suspects
	cfg      WatchConfig
	log      *slog.Logger
	warned   sparse

	waiting map[string]time.Time // suspended products, since this instance saw them so; of the one goroutine
}

var _ Runner = (*WatchGates)(nil)

// NewWatchGates wires the use case.
func NewWatchGates(catalog port.Catalog, epochs port.Epochs, gate port.GateAdmin, suspects Suspects,
	cfg WatchConfig, log *slog.Logger) *WatchGates {
	w := &WatchGates{catalog: catalog, epochs: epochs, gate: gate, suspects: suspects, cfg: cfg, log: log,
		waiting: make(map[string]time.Time)}
	w.beat = newBeat(cfg.Pause, cfg.RoundMax, log, w.round)
	return w
}

// Name implements Runner.
func (w *WatchGates) Name() string { return "watch-gates" }

func (w *WatchGates) round(ctx context.Context) {
	seen := make(map[string]time.Time, len(w.waiting))
	for after := ""; ; {
		stocks, err := w.catalog.List(ctx, after, w.cfg.PageMax)
		if err != nil {
			w.warn("the products could not be read", err)
			return
		}
		w.noteSuspended(stocks, seen)
		if err := w.page(ctx, stocks); err != nil {
			w.warn("the gates of a page could not be watched", err)
		}
		if len(stocks) < w.cfg.PageMax {
			break
		}
		after = stocks[len(stocks)-1].Product()
	}
	w.waiting = seen
}

// noteSuspended takes up what has been suspended for too long.
func (w *WatchGates) noteSuspended(stocks []domain.Stock, seen map[string]time.Time) {
	for _, s := range stocks {
		if s.State() != domain.SaleSuspended {
			continue
		}
		since, known := w.waiting[s.Product()]
		if !known {
			since = time.Now()
		}
		if time.Since(since) >= w.cfg.SuspendedMax {
			w.suspects.Suspect(s.Product(), "suspended and not reopened: "+s.Reason())
			since = time.Now()
		}
		seen[s.Product()] = since
	}
}

// page looks at the gates of some products.
func (w *WatchGates) page(ctx context.Context, stocks []domain.Stock) error {
	odd, judgements, err := judgeGates(ctx, w.catalog, w.gate, stocks)
	if err != nil {
		return err
	}
	for i, s := range odd {
		if err := w.act(ctx, s, judgements[i]); err != nil {
			w.warn("a gate could not be looked after", err)
		}
	}
	return nil
}

// judgeGates gives those open products whose gate looks wrong. They are judged with the ledger read
// a second time: the first read came before the look, and a sale or a rebuild may have come between.
func judgeGates(ctx context.Context, catalog port.Catalog, gate port.GateAdmin, stocks []domain.Stock) ([]domain.Stock, []gateJudgement, error) {
	open := stocks[:0:0]
	for _, s := range stocks {
		if s.State() == domain.SaleOpen {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return nil, nil, nil
	}
	views, err := gate.View(ctx, productsOf(open))
	if err != nil {
		return nil, nil, err
	}
	var odd []domain.Stock
	var oddViews []port.GateView
	for i, s := range open {
		if judgeGate(s, views[i]).verdict != gateFine {
			odd, oddViews = append(odd, s), append(oddViews, views[i])
		}
	}
	if len(odd) == 0 {
		return nil, nil, nil
	}
	again, err := catalog.Stocks(ctx, productsOf(odd))
	if err != nil {
		return nil, nil, err
	}
	var judged []domain.Stock
	var judgements []gateJudgement
	for i, s := range again {
		if s.State() == domain.SaleOpen && s.Epoch() == odd[i].Epoch() {
			judged, judgements = append(judged, s), append(judgements, judgeGate(s, oddViews[i]))
		}
	}
	return judged, judgements, nil
}

func (w *WatchGates) act(ctx context.Context, s domain.Stock, j gateJudgement) error {
	switch j.verdict {
	case gateUnread:
		w.warn("a gate could not be watched", errors.New(j.reason))
	case gateWrong:
		w.suspects.Suspect(s.Product(), j.reason)
	case gateUnopened:
		opened, err := w.gate.Open(ctx, s.Product(), s.Epoch())
		if err == nil && opened {
			w.log.Info("a gate was rebuilt and left shut; it is open now", "event", "gate_opened", "product", s.Product(), "epoch", s.Epoch())
		}
		return err
	case gateTermsOld:
		_, err := w.gate.SetTerms(ctx, s.Product(), s.Terms())
		return err
	case ledgerBack:
		return markDamaged(ctx, w.epochs, w.gate, w.log, s.Product(), j.reason)
	case gateFine:
	}
	return nil
}

func (w *WatchGates) warn(what string, err error) {
	if w.warned.pass() {
		w.log.Warn(what, "event", "watch_failed", "error", err)
	}
}

// gateVerdict is what a look at an open product's gate says. The zero value is that all is well.
type gateVerdict uint8

const (
	gateFine     gateVerdict = iota
	gateTermsOld             // has to be told the terms
	gateUnopened             // rebuilt, and its maker did not come to open it
	gateWrong                // suspend and rebuild
	ledgerBack               // the ledger went back behind the gate
	gateUnread               // nothing is known
)

type gateJudgement struct {
	verdict gateVerdict
	reason  string
}

// judgeGate compares a gate with the stock row of a product that the ledger calls open.
func judgeGate(s domain.Stock, v port.GateView) gateJudgement {
	switch {
	case v.Err != nil:
		return gateJudgement{gateUnread, s.Product() + ": " + v.Err.Error()}
	case !v.Loaded:
		return gateJudgement{gateWrong, "the gate has no record"}
	case v.VersionTold > s.Version():
		return gateJudgement{ledgerBack, ledgerWentBack(v, s)}
	case !v.SameServer:
		return gateJudgement{gateWrong, "the gate's record is of another server"}
	case v.Rewound:
		return gateJudgement{gateWrong, "the gate has forgotten something"}
	case v.Epoch < s.Epoch():
		return gateJudgement{gateWrong, fmt.Sprintf("the gate is of epoch %d, the ledger of %d", v.Epoch, s.Epoch())}
	case v.Epoch > s.Epoch():
		return gateJudgement{ledgerBack, fmt.Sprintf("the gate is of epoch %d, the ledger of %d"+wentBack, v.Epoch, s.Epoch())}
	case v.Building > 0:
		return gateJudgement{gateWrong, "the gate is being built though the ledger calls it open"}
	case v.Shut:
		return gateJudgement{verdict: gateUnopened}
	case v.Revision < s.Terms().Revision:
		return gateJudgement{verdict: gateTermsOld}
	}
	return gateJudgement{}
}

// wentBack ends a reason that operators see.
const wentBack = ": the database went back; `seckill doctor` says what to do"

func ledgerWentBack(v port.GateView, s domain.Stock) string {
	return fmt.Sprintf("the gate was told stock version %d, the ledger is at %d"+wentBack, v.VersionTold, s.Version())
}

// markDamaged takes a product out of sale until an operator has looked: nothing that the service
// knows says which of the two sides is right.
func markDamaged(ctx context.Context, epochs port.Epochs, gate port.GateAdmin, log *slog.Logger, product, reason string) error {
	log.Error("the database went back behind the gate; the product waits for an operator", "event", "product_damaged",
		"product", product, "reason", reason, "change", changeWentBack)
	if err := epochs.Suspend(ctx, []string{product}, reason, true); err != nil {
		return err
	}
	return gate.Shut(ctx, []string{product})
}

func productsOf(stocks []domain.Stock) []string {
	products := make([]string, len(stocks))
	for i, s := range stocks {
		products[i] = s.Product()
	}
	return products
}

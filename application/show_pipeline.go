package application

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// ShowPipeline shows what is on its way from the gate to the ledger and back.
type ShowPipeline struct {
	eyes    StockEyes
	parking port.Parking
	backlog port.BacklogReader
	intake  *Intake
	lane    func() LaneStats
	settle  func() SettleStats
	rebuild func() RebuildStats
	window  time.Duration
	clock   port.Clock
}

// NewShowPipeline wires the use case; lane, settle and rebuild give this instance's counts, window is the broker's
// check window.
func NewShowPipeline(eyes StockEyes, parking port.Parking, backlog port.BacklogReader, intake *Intake, lane func() LaneStats,
	settle func() SettleStats, rebuild func() RebuildStats, window time.Duration, clock port.Clock) *ShowPipeline {
	return &ShowPipeline{eyes: eyes, parking: parking, backlog: backlog, intake: intake, lane: lane, settle: settle, rebuild: rebuild,
		window: window, clock: clock}
}

// Show never fails: what could not be read is nil, and one part that is away blanks no other.
func (s *ShowPipeline) Show(ctx context.Context) PipelineView {
	lane, settle := s.lane(), s.settle()
	view := PipelineView{Suspended: []string{}, LaneWaiting: lane.Waiting, Intake: s.intake.State(), Batches: lane.Batches,
		BatchedCommands: lane.Commands, SentBatches: lane.SentBatches, SentFlows: lane.SentFlows,
		AppliedGroups: settle.Groups, AppliedRows: settle.Rows, CheckWindow: s.window.Seconds()}
	if last := s.rebuild(); last.LastProduct != "" {
		view.LastRebuilt = &ClosedProduct{last.LastProduct, last.LastClosed.Seconds()}
	}
	s.addProducts(ctx, &view)
	if backlog := s.backlog.Backlog(ctx); backlog.Known {
		view.LagMessages = &backlog.Messages
	}
	if untold, err := s.untold(ctx); err == nil {
		view.UntoldOrders = &untold
	}
	if parked, err := s.parking.CountParked(ctx); err == nil {
		view.Parked = &parked
	}
	return view
}

// addProducts sums the gates of all products.
func (s *ShowPipeline) addProducts(ctx context.Context, view *PipelineView) {
	open, oldest, readable := int64(0), time.Time{}, true
	for after := ""; ; {
		stocks, err := s.eyes.Catalog.List(ctx, after, lookPage)
		if err != nil {
			return
		}
		for _, stock := range stocks {
			if stock.State() != domain.SaleOpen {
				s.addSuspended(view, stock)
			}
		}
		if readable && len(stocks) > 0 {
			views, err := s.eyes.Admin.View(ctx, productsOf(stocks))
			readable = err == nil
			for _, v := range views {
				if v.Err != nil {
					view.GatesUnread++
					continue
				}
				open += v.OpenFlows
				if !v.OldestOpenAt.IsZero() && (oldest.IsZero() || v.OldestOpenAt.Before(oldest)) {
					oldest = v.OldestOpenAt
				}
			}
		}
		if len(stocks) < lookPage {
			break
		}
		after = stocks[len(stocks)-1].Product()
	}
	if !readable {
		return
	}
	view.OpenFlows = &open
	if !oldest.IsZero() {
		seconds := max(0, s.clock.Now().Sub(oldest).Seconds())
		view.OldestOpenSecond = &seconds
	}
}

func (s *ShowPipeline) addSuspended(view *PipelineView, stock domain.Stock) {
	view.Suspended = append(view.Suspended, stock.Product())
	at := stock.SuspendedAt()
	if at.IsZero() {
		return
	}
	closed := ClosedProduct{stock.Product(), max(0, s.clock.Now().Sub(at).Seconds())}
	if view.LongestClosed == nil || view.LongestClosed.Seconds < closed.Seconds {
		view.LongestClosed = &closed
	}
}

// untold counts as far as untoldMax: beyond, the exact number helps nobody.
func (s *ShowPipeline) untold(ctx context.Context) (int64, error) {
	count := 0
	for after := ""; ; {
		orders, err := s.eyes.Outbox.Untold(ctx, 0, after, lookPage)
		if err != nil {
			return 0, err
		}
		count += len(orders)
		if len(orders) < lookPage || count >= untoldMax {
			return int64(count), nil
		}
		after = orders[len(orders)-1].ID()
	}
}

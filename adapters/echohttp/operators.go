package echohttp

import (
	"context"
	"log/slog"
	"net/http"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

type (
	saleOpener interface {
		Open(context.Context, domain.Sale, port.Audit) (domain.Stock, bool, error)
	}
	salePauser interface {
		SetPaused(ctx context.Context, product string, paused bool, only string, audit port.Audit) (domain.Stock, error)
	}
	stockChanger interface {
		Change(context.Context, domain.StockChange, port.Audit) (application.ChangeReceipt, error)
		Show(ctx context.Context, product, token string) (application.ChangeView, error)
		List(ctx context.Context, product, before string, limit int) ([]application.ChangeView, error)
	}
	stockShower interface {
		Show(context.Context, string) (application.StockView, error)
		Edition(ctx context.Context, product string) (string, error)
		List(ctx context.Context, after string, limit int) ([]application.StockView, error)
	}
	reconciler interface {
		Reconcile(context.Context, application.ReconcileRequest) (application.ReconcileReport, error)
		Report(context.Context, string) (application.ReconcileReport, error)
		Reports(ctx context.Context, before string, limit int) ([]application.ReconcileReport, error)
	}
	productRebuilder interface {
		Rebuild(context.Context, string, application.LostPolicy, port.Audit) (application.RebuildAnswer, error)
	}
	purchaseTracer interface {
		Trace(context.Context, domain.Key) (application.TraceView, error)
	}
	pipelineShower interface {
		Show(context.Context) application.PipelineView
	}
	booksVerifier interface {
		Verify(context.Context, string, []application.JournalEntry) (application.Verification, error)
	}
	examiner interface {
		Examine(context.Context) (application.Examination, error)
	}
	parkedLister interface {
		List(ctx context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error)
	}
	metricsWriter interface {
		Text() (kind string, body []byte, err error)
	}
	parkedReplayer interface {
		ReplayOne(context.Context, string, port.Audit) (application.ReplayResult, error)
		ReplayThese(context.Context, []string, port.Audit) ([]application.ReplayResult, error)
		ReplayMatching(ctx context.Context, reason port.ParkReason, product, after string, audit port.Audit) (
			results []application.ReplayResult, next string, err error)
	}
)

// OperatorsDeps are the use cases behind the operators' door.
type OperatorsDeps struct {
	Open      saleOpener
	Pause     salePauser
	Changes   stockChanger
	Stock     stockShower
	Reconcile reconciler
	Trace     purchaseTracer
	Pipeline  pipelineShower
	Verify    booksVerifier
	Doctor    examiner
	Parked    parkedLister
	Replay    parkedReplayer
	Rebuild   productRebuilder
	Readiness readinessChecker
	Metrics   metricsWriter
}

type operatorsDoor struct {
	*Door
	deps OperatorsDeps
}

// NewOperatorsDoor is the door for operators.
func NewOperatorsDoor(cfg Config, deps OperatorsDeps, log *slog.Logger) *Door {
	d := operatorsDoor{newDoor("operators", cfg, log), deps}
	d.add(append([]route{
		{http.MethodGet, "/admin/v1/products", "ops:read", d.listStocks, false},
		{http.MethodPut, "/admin/v1/products/:productId", "stock:admin", d.openSale, false},
		{http.MethodGet, "/admin/v1/products/:productId", "ops:read", d.showStock, false},
		{http.MethodPost, "/admin/v1/products/:productId/pause", "stock:admin", d.pause, false},
		{http.MethodPost, "/admin/v1/products/:productId/resume", "stock:admin", d.resume, false},
		{http.MethodPost, "/admin/v1/products/:productId/stock-changes", "stock:admin", d.changeStock, false},
		{http.MethodGet, "/admin/v1/products/:productId/stock-changes", "ops:read", d.listChanges, false},
		{http.MethodGet, "/admin/v1/products/:productId/stock-changes/:key", "ops:read", d.showChange, false},
		{http.MethodPost, "/admin/v1/products/:productId/rebuild", "stock:admin", d.rebuild, true},
		{http.MethodPost, "/admin/v1/reconciliations", "reconcile:run", d.reconcile, true},
		{http.MethodGet, "/admin/v1/reconciliations", "ops:read", d.listReports, false},
		{http.MethodGet, "/admin/v1/reconciliations/:id", "ops:read", d.showReport, false},
		{http.MethodGet, "/admin/v1/trace", "ops:read", d.trace, false},
		{http.MethodGet, "/admin/v1/pipeline", "ops:read", d.showPipeline, false},
		{http.MethodGet, "/admin/v1/verification", "ops:read", d.verify, true},
		{http.MethodGet, "/admin/v1/doctor", "ops:read", d.examine, false},
		{http.MethodGet, "/admin/v1/parked", "ops:read", d.listParked, false},
		{http.MethodPost, "/admin/v1/parked/replay", "reconcile:run", d.replaySome, true},
		{http.MethodPost, "/admin/v1/parked/:id/replay", "reconcile:run", d.replayOne, false},
		{http.MethodGet, "/metrics", "ops:read", d.showMetrics, false},
		{http.MethodGet, "/debug/pprof/:profile", "ops:read", d.showProfile, true},
		{http.MethodGet, "/healthz", probe, d.healthy, false},
		{http.MethodGet, "/readyz", probe, d.readyOf(deps.Readiness), false},
	}, d.pageRoutes()...))
	return d.Door
}

package echohttp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"seckill/application"
	"seckill/domain"
)

type (
	deductor interface {
		Deduct(context.Context, domain.DeductCommand) (application.Receipt, error)
	}
	orderShower interface {
		Show(context.Context, domain.Key) (application.OrderView, error)
	}
	orderAwaiter interface {
		Await(context.Context, domain.Key, time.Duration) (application.OrderView, error)
	}
	orderCanceller interface {
		Cancel(context.Context, domain.Key) (application.OrderView, error)
	}
	publicStockShower interface {
		Public(context.Context, string) (application.PublicStock, error)
	}
	readinessChecker interface {
		Check(context.Context) (map[string]application.PartStatus, bool)
	}
)

// BuyersDeps are the use cases behind the buyers' door.
type BuyersDeps struct {
	Deduct    deductor
	Orders    orderShower
	Await     orderAwaiter
	Cancel    orderCanceller
	Stock     publicStockShower
	Readiness readinessChecker
}

type buyersDoor struct {
	*Door
	deps BuyersDeps
}

// NewBuyersDoor is the door for buyers.
func NewBuyersDoor(cfg Config, deps BuyersDeps, log *slog.Logger) *Door {
	d := buyersDoor{newDoor("buyers", cfg, log), deps}
	d.hideAway, d.grants = true, newAllowance(cfg.BuyerRate, cfg.BuyerBurst)
	d.add(append([]route{
		{http.MethodPost, "/api/v1/products/:productId/orders", "order:create", d.createOrder, false},
		{http.MethodGet, "/api/v1/products/:productId/orders/:token", "order:read", d.showOrder, false},
		{http.MethodDelete, "/api/v1/products/:productId/orders/:token", "order:cancel", d.cancelOrder, false},
		{http.MethodGet, "/api/v1/products/:productId", anyone, d.showPublicStock, false},
		{http.MethodGet, "/healthz", probe, d.healthy, false},
		{http.MethodGet, "/readyz", probe, d.readyOf(deps.Readiness), false},
	}, d.pageRoutes()...))
	return d.Door
}

package echohttp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"seckill/application"
	"seckill/domain"
)

// Bare is the buyers' door with nothing behind it: each purchase is accepted at once. It is
// the yardstick that a benchmark holds the service against.
func Bare(cfg Config) http.Handler {
	return NewBuyersDoor(cfg, BuyersDeps{Deduct: acceptAll{}}, slog.New(slog.DiscardHandler)).Handler()
}

type acceptAll struct{}

func (acceptAll) Deduct(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
	order := application.OrderView{Key: c.Key(), Quantity: c.Quantity(), Status: application.OrderPending, CreatedAt: time.Now()}
	return application.Receipt{Order: order, Remaining: 1}, nil
}

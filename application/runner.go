package application

import "context"

// Runner is everything that runs beside requests: it starts once everything below it is up and
// stops before it goes. Start returns as soon as the work is under way and must not tie it to
// ctx's end; Stop ends the work and waits for it, at most until ctx ends. A second Stop does nothing.
type Runner interface {
	Name() string
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Suspects takes products whose gate has forgotten something or has been proved wrong. It never
// blocks; a product that is named again while its rebuild waits is rebuilt once.
type Suspects interface {
	Suspect(product, reason string)
}

// Leases says whether this instance may sell a product now: it has read from the ledger, within
// the last lease time on its monotonic clock, that the product is not suspended.
type Leases interface {
	MaySell(product string) bool
}

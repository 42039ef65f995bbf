package application

import (
	"context"

	"seckill/application/port"
)

// parkedListMax is the most messages in one answer.
const parkedListMax = 500

// ListParked shows an operator what could not be applied.
type ListParked struct{ parking port.Parking }

// NewListParked wires the use case.
func NewListParked(parking port.Parking) *ListParked { return &ListParked{parking} }

// List gives at most limit (1 to 500) waiting messages of a reason and a product (empty: any) below the id before, newest first.
func (l *ListParked) List(ctx context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
	return l.parking.ListParked(ctx, reason, product, before, min(max(limit, 1), parkedListMax))
}

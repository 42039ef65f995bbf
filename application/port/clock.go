package port

//go:generate go tool mockgen -source=clock.go -destination=portmock/clock.go -package=portmock

import "time"

// Clock tells the wall time that windows and timestamps are made of. Ages and pauses are
// measured on Go's monotonic clock, never on this one, so a jump of it makes nothing wait
// and nothing hurry.
type Clock interface {
	Now() time.Time
}

// IDs makes ids of the alphabet of domain.CheckID.
type IDs interface {
	// Attempt is unique among all instances for the life of a sale; it is made for every request, so it is cheap.
	Attempt() string

	// Unique is 32 hexadecimal digits (UUID version 7), sortable by time.
	Unique() string
}

package faultpoint

import (
	"time"

	"seckill/application/port"
)

// Clock is a clock that is off by so much.
func Clock(inner port.Clock, offset time.Duration) port.Clock { return clock{inner, offset} }

type clock struct {
	inner  port.Clock
	offset time.Duration
}

func (c clock) Now() time.Time { return c.inner.Now().Add(c.offset) }

package application

import (
	"math/rand/v2"
	"time"
)

// Chance gives a duration from zero to just below n, each as likely as the other; nil is the
// runtime's own chance. It is given from outside where a run has to be repeated exactly.
type Chance func(n time.Duration) time.Duration

// shorten takes up to half of a pause away, so that instances do not march in step.
func (c Chance) shorten(pause time.Duration) time.Duration {
	if c == nil {
		c = rand.N[time.Duration]
	}
	return pause/2 + c(pause/2+1)
}

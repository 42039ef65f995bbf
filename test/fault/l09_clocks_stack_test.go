//go:build stack

package fault

import (
	"testing"
	"time"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/shop"
)

const l9 = "clocks are wrong"

// L9: an instance's clock is wrong by an hour or a day, beside one that is right: ages and windows of the
// protocol are not made of it.
func TestL9ServiceClock(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L9", l9)
	s := shop.New(t, shop.Stack, "SECKILL_FAULT__ALLOWED=true", "SECKILL_RECONCILE__SAFE_AGE=1s")
	right := s.Another()
	s.Start()
	right.Start()
	for range campaign.Size(t, 1, 5) {
		for _, offset := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
			drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s, right}, Requests: crowdSize, Figures: layer, Within: liveWithin, Fault: func() {
				layer.Fault("service's clock " + offset.String())
				s.Kill()
				s.Set("SECKILL_FAULT__CLOCK_OFFSET=" + offset.String())
				s.Start()
			}})
		}
	}
}

// L9: the database's clock jumps while it runs: its times are informational.
func TestL9DatabaseClock(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L9", l9)
	s, servers := ownParts(t, harness.Parts{MySQL: true, Clocks: true}, t.TempDir())
	s.Start()
	for range campaign.Size(t, 1, 5) {
		for _, offset := range []time.Duration{10 * time.Minute, -10 * time.Minute, -24 * time.Hour, 0} {
			sellThrough(t, s, layer, func() {
				layer.Fault("database's clock to " + offset.String())
				must(t, servers.MySQL.MoveClock(offset))
				waitDatabaseClock(t, s, offset)
			})
		}
	}
}

// waitDatabaseClock waits until the database sees the clock that it was given.
func waitDatabaseClock(t *testing.T, s *shop.Shop, offset time.Duration) {
	t.Helper()
	db := database(t, s)
	shop.Eventually(t, 30*time.Second, "the database sees its clock", func() (bool, string) {
		var unix int64
		must(t, db.QueryRow("SELECT UNIX_TIMESTAMP()").Scan(&unix))
		off := time.Until(time.Unix(unix, 0)) - offset
		return off.Abs() < time.Minute, off.String()
	})
}

//go:build stack

package fault

import (
	"testing"
	"time"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/shop"
)

// F08: queues that are handed over while their messages are under way, again and again, and one holder that
// is killed, apply each purchase once.
func TestF08QueuesHandedOver(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "F08", "a second instance comes and goes, the first is killed")
	first := shop.New(t, shop.Stack)
	first.Start()
	second := first.Another()
	n := tenth(t, 5000)
	drive.Sell(t, drive.Sale{Doors: []*shop.Shop{first, second}, Requests: n, Rate: n / 20, At: 0.05, Figures: layer, Fault: func() {
		for round := range 6 { // the sale takes 20 s
			second.Start()
			layer.Fault("second instance started")
			if round == 3 {
				first.Kill()
				layer.Fault("first instance kill -9")
				first.Start()
			}
			time.Sleep(1500 * time.Millisecond) // queues are handed over meanwhile
			second.Stop()
			layer.Fault("second instance stopped")
			time.Sleep(1500 * time.Millisecond)
		}
	}})
}

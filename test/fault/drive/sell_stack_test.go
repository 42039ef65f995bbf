//go:build stack

package drive_test

import (
	"os"
	"path/filepath"
	"testing"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/shop"
)

// A service that is killed amid the driver's sale settles, and the figures say what happened.
func TestASaleIsPlayedThroughAKill(t *testing.T) {
	t.Parallel()
	t.Cleanup(forgetFigures(t))
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, profile)
			s.Start()
			layer := campaign.Open(t, ownLayer, "the service is killed")
			r := drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Requests: 100, Figures: layer, Fault: func() {
				s.Kill()
				layer.Fault("service kill -9")
				s.Start()
			}})
			if r.Accepted != 90 || r.Refused != 10 || r.Broken() != 0 || len(r.Settle) != 1 || len(r.Journal) != 100 {
				t.Errorf("%+v", r.Figures)
			}
			if r.Requests < 100 || len(r.Unknown) == 0 {
				t.Errorf("nobody met the fault: %+v", r.Figures)
			}
		})
	}
}

// ownLayer is no layer of the plan.
const ownLayer = "driver"

func forgetFigures(t *testing.T) func() {
	t.Helper()
	folder, err := campaign.Folder()
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = os.Remove(filepath.Join(folder, ownLayer+".json")) }
}

package rehearse

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
)

// presignMax bounds the memory of tokens signed beforehand: about 60 MB.
const presignMax = 200_000

// crowd names everyone and everything of one rehearsal by number.
type crowd struct {
	run      string
	seed     uint64
	products []string
	repeats  float64
	sign     func(sub string) (string, error)
	signed   []string
}

func newCrowd(c Config) (*crowd, error) {
	var raw [8]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, fmt.Errorf("run id: %w", err)
	}
	w := &crowd{run: hex.EncodeToString(raw[:4]), repeats: c.Repeats, sign: c.BuyerToken}
	for _, b := range raw {
		w.seed = w.seed<<8 | uint64(b)
	}
	for n := range c.Products {
		w.products = append(w.products, fmt.Sprintf("rehearse-%s-%d", w.run, n))
	}
	w.signed = make([]string, 0, min(c.Buyers, presignMax))
	for i := range cap(w.signed) {
		t, err := c.BuyerToken(w.user(i))
		if err != nil {
			return nil, fmt.Errorf("sign a buyer's token: %w", err)
		}
		w.signed = append(w.signed, t)
	}
	return w, nil
}

func (w *crowd) user(i int) string        { return "rehearse-" + w.run + "-b" + strconv.Itoa(i) }
func (w *crowd) token(i int) string       { return "r" + w.run + "-" + strconv.Itoa(i) }
func (w *crowd) productOf(i int) int      { return i % len(w.products) }
func (w *crowd) product(i int) string     { return w.products[w.productOf(i)] }
func (w *crowd) repeatsAtOnce(i int) bool { return w.asksTwice(i) && w.dice(i)&1 == 0 }
func (w *crowd) repeatsLater(i int) bool  { return w.asksTwice(i) && w.dice(i)&1 == 1 }

func (w *crowd) bearer(i int) (string, error) {
	if i < len(w.signed) {
		return w.signed[i], nil
	}
	return w.sign(w.user(i))
}

func (w *crowd) asksTwice(i int) bool {
	return float64(w.dice(i)>>11)/(1<<53) < w.repeats
}

// dice gives a buyer the same random number each time (splitmix64).
func (w *crowd) dice(i int) uint64 {
	z := w.seed + (uint64(i)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

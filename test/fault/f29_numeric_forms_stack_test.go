//go:build stack

package fault

import (
	"testing"

	"seckill/test/shop"
)

// F29: what is no strict whole number reaches neither the gate nor the ledger.
func f29QuantitiesThatAreNone(t *testing.T, s *shop.Shop) {
	quantitiesNowhere(t, s, []string{`"nan"`, `"inf"`, `"-inf"`, `"0x10"`, `" 5 "`, `"5"`, `1.5`, `"1e2"`, `1e2`, `1e400`, `""`,
		`nan`, `0x10`, `01`, `null`, `true`, `[1]`})
}

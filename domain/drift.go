package domain

// Counts are the two sides of one product, read at about the same time.
type Counts struct {
	Product       string
	GateRemaining int64
	LedgerStock   int64
	OpenUnits     int64 // units of open flows that have no row
	UntoldUnits   int64 // units that the gate has yet to be told: positive gives back, negative takes
	Version       int64
	Epoch         int64
	Sequence      int64
}

// Drift is what the gate has too much (positive) or too little (negative): a gate in
// agreement has what the ledger has, less what is on its way.
func (c Counts) Drift() int64 {
	return c.GateRemaining + c.UntoldUnits - (c.LedgerStock - c.OpenUnits)
}

// SettledDrift is the drift that two looks agree on, with nothing moved between them and
// nothing in flight; ok is false while either look could be a picture of motion.
func SettledDrift(first, second Counts) (drift int64, ok bool) {
	still := first.Product == second.Product && first.Version == second.Version &&
		first.Epoch == second.Epoch && first.Sequence == second.Sequence &&
		first.OpenUnits == second.OpenUnits && first.UntoldUnits == second.UntoldUnits
	if !still || first.Drift() != second.Drift() {
		return 0, false
	}
	return second.Drift(), true
}

package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

func op(client int, what What, token, quantity int, answer Answer, call, end int64) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: Request{what, token, quantity}, Output: answer, Call: call, Return: end}
}

func TestWhatTheCheckerTakesAndWhatItDoesNot(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]struct {
		ok      bool
		history []porcupine.Operation
	}{
		"two accepted of two, side by side": {true, []porcupine.Operation{
			op(0, Buy, 0, 1, Accepted, 0, 10), op(1, Buy, 1, 1, Accepted, 0, 10), op(2, Buy, 2, 1, SoldOut, 5, 12)}},
		"three accepted of two": {false, []porcupine.Operation{
			op(0, Buy, 0, 1, Accepted, 0, 10), op(1, Buy, 1, 1, Accepted, 0, 10), op(2, Buy, 2, 1, Accepted, 0, 10)}},
		"one token accepted twice": {false, []porcupine.Operation{
			op(0, Buy, 0, 1, Accepted, 0, 10), op(0, Buy, 0, 1, Accepted, 11, 20)}},
		"a repeat of what nobody bought": {false, []porcupine.Operation{op(0, Buy, 0, 1, Repeat, 0, 10)}},
		"sold out while units are left": {false, []porcupine.Operation{
			op(0, Buy, 0, 1, Accepted, 0, 10), op(1, Buy, 1, 1, SoldOut, 11, 20)}},
		"sold out, then accepted, and nothing came back": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(1, Buy, 1, 1, SoldOut, 11, 20), op(2, Buy, 2, 1, Accepted, 21, 30)}},
		"an owner told sold out": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Buy, 0, 2, SoldOut, 11, 20)}},
		"an unknown that took both units": {true, []porcupine.Operation{
			op(0, Buy, 0, 2, Unknown, 0, Never), op(1, Buy, 1, 1, SoldOut, 11, 20), op(0, Buy, 0, 2, Repeat, 21, 30)}},
		"an unknown that never happened": {true, []porcupine.Operation{
			op(0, Buy, 0, 2, Unknown, 0, Never), op(1, Buy, 1, 2, Accepted, 11, 20), op(0, Buy, 0, 2, SoldOut, 21, 30)}},
		"an unknown that was there and is gone": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Unknown, 0, Never), op(0, Buy, 0, 2, Repeat, 11, 20), op(1, Buy, 1, 2, Accepted, 21, 30)}},
		"an unknown that was seen, and that a kill has forgotten": {true, []porcupine.Operation{
			op(0, Buy, 0, 2, Unknown, 0, Never), op(0, Forget, 0, 2, Done, 0, Never), op(1, Buy, 1, 1, SoldOut, 11, 20),
			op(1, Buy, 1, 2, Accepted, 21, 30), op(0, Buy, 0, 2, SoldOut, 31, 40)}},
		"one that was promised, and is forgotten": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Unknown, 0, Never), op(0, Forget, 0, 2, Done, 0, Never), op(0, Buy, 0, 2, Repeat, 11, 20),
			op(1, Buy, 1, 2, Accepted, 21, 30)}},
		"one that was accepted, and is forgotten": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Buy, 0, 2, Unknown, 11, Never), op(0, Forget, 0, 2, Done, 11, Never),
			op(1, Buy, 1, 2, Accepted, 21, 30)}},
		"a cancelled unit sold again": {true, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Cancel, 0, 2, Done, 11, 20), op(1, Buy, 1, 2, Accepted, 21, 30)}},
		"a cancelled unit that does not come back": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Cancel, 0, 2, Done, 11, 20), op(1, Buy, 1, 2, SoldOut, 21, 30)}},
		"a cancelled unit that comes back late": {true, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Cancel, 0, 2, Unknown, 11, Never), op(1, Buy, 1, 2, SoldOut, 21, 30),
			op(0, Return, 0, 2, Done, 11, Never), op(1, Buy, 1, 2, Accepted, 31, 40)}},
		"a cancelled unit that comes back twice": {false, []porcupine.Operation{
			op(0, Buy, 0, 2, Accepted, 0, 10), op(0, Cancel, 0, 2, Unknown, 11, Never), op(0, Return, 0, 2, Done, 11, Never),
			op(1, Buy, 1, 2, Accepted, 21, 30), op(2, Buy, 2, 2, Accepted, 31, 40)}},
		"a cancel of what nobody bought": {true, []porcupine.Operation{op(0, Cancel, 0, 1, Absent, 0, 10), op(0, Buy, 0, 1, Accepted, 11, 20)}},
		"a cancel that does not find an order": {false, []porcupine.Operation{
			op(0, Buy, 0, 1, Accepted, 0, 10), op(0, Cancel, 0, 1, Absent, 11, 20)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Model(2, 3); !h.ok && len(Break(got, h.history)) == 0 {
				t.Error("nothing breaks it")
			}
			if got := porcupine.CheckOperations(Model(2, 3), h.history); got != h.ok {
				t.Errorf("linearizable: %v", got)
			}
		})
	}
}

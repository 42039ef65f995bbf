package redislua

import (
	"testing"

	"seckill/test/contract"
)

// The scripts and the plain Go model answer alike, whatever the order of things.
func TestScriptsAnswerAsTheModelDoes(t *testing.T) {
	t.Parallel()
	contract.RunGateDifferential(t, 1, 6_000, map[string]contract.GateFixture{
		"go model":  modelFixture(),
		"miniredis": fixtureOn(miniClient(t), Config{Identity: "here"}),
	})
}

package redislua

import (
	"testing"

	"seckill/test/contract"
	"seckill/test/scale"
)

// The scripts and the plain Go model answer alike, whatever the order of things.
func TestScriptsAnswerAsTheModelDoes(t *testing.T) {
	t.Parallel()
	contract.RunGateDifferential(t, 1, scale.Count(t, 6_000, 1_000_000), map[string]contract.GateFixture{
		"go model":  modelFixture(),
		"miniredis": fixtureOn(miniClient(t), Config{Identity: "here"}),
	})
}

package application

import (
	"sync/atomic"

	"seckill/domain"
)

// DeductAnswer is what a buyer was told, for the counts.
type DeductAnswer uint8

// The answers. What is not a refusal by the gate's word or by ours is unknown.
const (
	ToldUnknown DeductAnswer = iota
	ToldAccepted
	ToldRepeat
	ToldNotEnough
	ToldLimit
	ToldClosed
	ToldRefused
	ToldConflict
	ToldNotFound
	ToldBusy
	ToldRebuilding
	Answers = iota // how many there are
)

var deductAnswerNames = [Answers]string{"unknown", "accepted", "repeat", "not-enough", "limit", "closed", "refused",
	"conflict", "not-found", "busy", "rebuilding"}

// String is the answer's one word.
func (a DeductAnswer) String() string { return deductAnswerNames[a] }

// answerCounts are of one lane.
type answerCounts [Answers]atomic.Int64

func (c *answerCounts) note(r Receipt, err error) { c[toldOf(r, err)].Add(1) }

func (c *answerCounts) all() (counts [Answers]int64) {
	for i := range c {
		counts[i] = c[i].Load()
	}
	return counts
}

func toldOf(r Receipt, err error) DeductAnswer {
	if err == nil {
		if r.Replayed {
			return ToldRepeat
		}
		return ToldAccepted
	}
	switch domain.CodeOf(err) {
	case domain.CodeStockNotEnough:
		return ToldNotEnough
	case domain.CodeLimitReached:
		return ToldLimit
	case domain.CodeSaleClosed:
		return ToldClosed
	case domain.CodeTokenRefused:
		return ToldRefused
	case domain.CodeTokenReused:
		return ToldConflict
	case domain.CodeProductNotFound:
		return ToldNotFound
	case domain.CodeBusy:
		return ToldBusy
	case domain.CodeRebuilding:
		return ToldRebuilding
	default:
		return ToldUnknown
	}
}

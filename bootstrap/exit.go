package bootstrap

import (
	"context"
	"errors"

	"seckill/domain"
)

// The exit codes of every command.
const (
	ExitFine        = 0
	ExitFailed      = 1
	ExitUsage       = 2   // usage or settings
	ExitUnreachable = 3   // a dependency is not reachable
	ExitViolation   = 4   // an invariant is broken, or drift was found
	ExitThreshold   = 5   // a threshold was missed
	ExitInterrupted = 130 // by a signal
)

// exitError carries the exit code of a command that failed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func withExit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// errViolation ends a command whose report already says what is wrong.
var errViolation = &exitError{ExitViolation, errors.New("an invariant is broken or a difference was found")}

func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, domain.ErrUnavailable):
		return ExitUnreachable
	case errors.Is(err, domain.ErrInvalidRequest):
		return ExitUsage
	}
	return ExitFailed
}

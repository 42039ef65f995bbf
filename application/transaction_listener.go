package application

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// listenTimeout bounds an answer: the client has one goroutine for all check-backs.
const listenTimeout = time.Second

// TransactionListener answers the broker by the two use cases, within a second and without a panic.
type TransactionListener struct {
	confirm *ConfirmDeductions
	resolve *ResolveDeductions
}

var _ port.TransactionListener = (*TransactionListener)(nil)

// NewTransactionListener joins the local transaction and the check-back.
func NewTransactionListener(confirm *ConfirmDeductions, resolve *ResolveDeductions) *TransactionListener {
	return &TransactionListener{confirm, resolve}
}

// Confirm is the local transaction.
func (l *TransactionListener) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	return l.ask(ctx, batch, l.confirm.Confirm)
}

// Resolve is the check-back.
func (l *TransactionListener) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	return l.ask(ctx, batch, l.resolve.Resolve)
}

// ask waits for the answer no longer than it may take, even for a port that forgets its deadline.
func (l *TransactionListener) ask(ctx context.Context, batch domain.Batch,
	answer func(context.Context, domain.Batch) domain.Verdict) domain.Verdict {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	verdict := make(chan domain.Verdict, 1)
	go func() {
		said := domain.VerdictUnknown // stays so after a panic
		defer func() { verdict <- said }()
		defer logPanic(l.resolve.log, "transaction listener")
		said = answer(ctx, batch)
	}()
	select {
	case v := <-verdict:
		return v
	case <-ctx.Done():
		return domain.VerdictUnknown
	}
}

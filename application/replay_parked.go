package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// ReplayConfig bounds the replay of parked messages.
type ReplayConfig struct {
	Pause     time.Duration // between rounds
	PageMax   int           // messages in one settlement
	PagesMax  int           // settlements in one round
	RoundMax  time.Duration // a round's time
	ByHandMax int           // messages that an operator may have replayed in one call
	AuditMax  time.Duration // for writing down what was replayed, once it is
}

// DefaultReplayConfig replays some seconds after a product was opened again.
func DefaultReplayConfig() ReplayConfig {
	return ReplayConfig{Pause: 3 * time.Second, PageMax: 200, PagesMax: 10, RoundMax: 30 * time.Second,
		ByHandMax: 100, AuditMax: 5 * time.Second}
}

// ReplayParked applies what was parked: by itself the messages that came while their product was not
// open, once it is, and everything else when an operator asks for it. It is replayed from the
// database's copy, which outlives the broker's. Two who replay the same message meet each other's rows.
type ReplayParked struct {
	*beat
	parking port.Parking
	audits  port.AuditLog
	settle  *SettleDeductions
	decode  Decode
	cfg     ReplayConfig
	log     *slog.Logger
}

var _ Runner = (*ReplayParked)(nil)

// NewReplayParked wires the use case.
func NewReplayParked(parking port.Parking, audits port.AuditLog, settle *SettleDeductions, decode Decode, cfg ReplayConfig,
	log *slog.Logger) *ReplayParked {
	r := &ReplayParked{parking: parking, audits: audits, settle: settle, decode: decode, cfg: cfg, log: log}
	r.beat = newBeat(cfg.Pause, cfg.RoundMax, log, r.round)
	return r
}

// Name names the runner.
func (r *ReplayParked) Name() string { return "replay" }

// round replays pages as long as they are full and something in them was finished.
func (r *ReplayParked) round(ctx context.Context) {
	for range r.cfg.PagesMax {
		full, done, err := r.page(ctx)
		if err != nil {
			r.log.WarnContext(ctx, "parked messages could not be replayed", "event", "replay_failed", "error", err)
			return
		}
		if !full || done == 0 {
			return
		}
	}
}

func (r *ReplayParked) page(ctx context.Context) (full bool, done int, err error) {
	parked, err := r.parking.Replayable(ctx, r.cfg.PageMax)
	if err != nil || len(parked) == 0 {
		return false, 0, err
	}
	results, err := r.replay(ctx, parked)
	for _, result := range results {
		if result.Outcome == ReplayDone {
			done++
		}
	}
	return len(parked) == r.cfg.PageMax, done, err
}

// replay applies copies. What is finished is marked; everything else stays as it is.
func (r *ReplayParked) replay(ctx context.Context, parked []port.Parked) ([]ReplayResult, error) {
	results := make([]ReplayResult, len(parked))
	var at []int // of the deliveries in results
	var deliveries []port.Delivery
	for i, p := range parked {
		results[i] = ReplayResult{ID: p.ID, Reason: p.Reason, Outcome: ReplayLeft}
		batch, err := r.read(p)
		if err != nil {
			results[i].Detail = clip(err.Error(), parkedDetailMax)
			continue
		}
		at = append(at, i)
		deliveries = append(deliveries, port.Delivery{Batch: batch, Body: p.Body, Origin: p.Origin})
	}
	if len(deliveries) == 0 {
		return results, nil
	}
	var finished []string
	for n, left := range r.settle.Replay(ctx, deliveries) {
		result := &results[at[n]]
		if result.Detail = left; left == "" {
			result.Outcome = ReplayDone
			finished = append(finished, result.ID)
		}
	}
	if len(finished) == 0 {
		return results, nil
	}
	if err := r.parking.MarkReplayed(ctx, finished); err != nil {
		return nil, fmt.Errorf("mark %d messages as replayed: %w", len(finished), err)
	}
	return results, nil
}

// read makes a batch of a copy.
func (r *ReplayParked) read(p port.Parked) (domain.Batch, error) {
	if len(p.Body) >= port.ParkedBodyMax {
		return domain.Batch{}, fmt.Errorf("the copy was cut at %d bytes: nothing can be replayed from it", port.ParkedBodyMax)
	}
	batch, err := r.decode(p.Body)
	if err != nil {
		return batch, fmt.Errorf("the copy cannot be read: %w", err)
	}
	return batch, nil
}

// ReplayOne replays one message at an operator's wish; one that was replayed before says so.
// CodeParkedNotFound, CodeUnavailable.
func (r *ReplayParked) ReplayOne(ctx context.Context, id string, audit port.Audit) (ReplayResult, error) {
	results, err := r.ReplayThese(ctx, []string{id}, audit)
	if err != nil {
		return ReplayResult{}, err
	}
	if results[0].Outcome == ReplayNotFound {
		return ReplayResult{}, domain.NewError(domain.CodeParkedNotFound, "there is no such parked message", nil)
	}
	return results[0], nil
}

// ReplayThese replays messages by id, at most ByHandMax of them, and answers in their order.
// CodeInvalidRequest, CodeUnavailable; after an error some may have been replayed, and a repeat is harmless.
func (r *ReplayParked) ReplayThese(ctx context.Context, ids []string, audit port.Audit) ([]ReplayResult, error) {
	if len(ids) == 0 || len(ids) > r.cfg.ByHandMax {
		return nil, &domain.Error{Code: domain.CodeInvalidRequest, Field: "ids",
			Detail: fmt.Sprintf("ids must have 1 to %d members", r.cfg.ByHandMax)}
	}
	parked, err := r.parking.ReadParked(ctx, ids)
	if err != nil {
		return nil, err
	}
	results := make([]ReplayResult, len(ids))
	var waiting []port.Parked
	var at []int
	for i, id := range ids {
		p := parked[i]
		results[i] = ReplayResult{ID: id, Reason: p.Reason, Outcome: ReplayDone}
		switch {
		case p.ID == "":
			results[i].Outcome = ReplayNotFound
		case p.ReplayedAt.IsZero():
			waiting, at = append(waiting, p), append(at, i)
		}
	}
	replayed, err := r.byHand(ctx, waiting, audit)
	if err != nil {
		return nil, err
	}
	for n, result := range replayed {
		results[at[n]] = result
	}
	return results, nil
}

// ReplayMatching replays waiting messages of a reason and a product (empty: any), oldest first, beginning
// behind the id after, at most ByHandMax; next is where to go on, empty at the end. CodeInvalidRequest,
// CodeUnavailable.
func (r *ReplayParked) ReplayMatching(ctx context.Context, reason port.ParkReason, product, after string, audit port.Audit) (
	results []ReplayResult, next string, err error) {
	parked, err := r.parking.FindParked(ctx, reason, product, after, r.cfg.ByHandMax)
	if err != nil {
		return nil, "", err
	}
	if len(parked) == r.cfg.ByHandMax {
		next = parked[len(parked)-1].ID
	}
	results, err = r.byHand(ctx, parked, audit)
	return results, next, err
}

// byHand replays and writes down for whom, also when the one who asked has gone.
func (r *ReplayParked) byHand(ctx context.Context, parked []port.Parked, audit port.Audit) ([]ReplayResult, error) {
	if len(parked) == 0 {
		return []ReplayResult{}, nil
	}
	results, replayErr := r.replay(ctx, parked)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.AuditMax)
	defer cancel()
	after, err := json.Marshal(results)
	if err != nil {
		return nil, domain.NewError(domain.CodeInternal, "an audit row cannot be written", err)
	}
	product := parked[0].Product
	for _, p := range parked {
		if p.Product != product {
			product = "" // of several
		}
	}
	if err := r.audits.Record(ctx, audit, product, "", string(after)); err != nil || replayErr != nil {
		return nil, errors.Join(replayErr, err)
	}
	return results, nil
}

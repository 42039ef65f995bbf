package application

import (
	"context"
	"log/slog"
	"time"

	"seckill/application/port"
)

// ReplayConfig bounds the replay of parked messages.
type ReplayConfig struct {
	Pause    time.Duration // between rounds
	PageMax  int           // messages in one settlement
	PagesMax int           // settlements in one round
	RoundMax time.Duration // a round's time
}

// DefaultReplayConfig replays some seconds after a product was opened again.
func DefaultReplayConfig() ReplayConfig {
	return ReplayConfig{Pause: 3 * time.Second, PageMax: 200, PagesMax: 10, RoundMax: 30 * time.Second}
}

// ReplayParked applies messages that came while their product was not open, once it is. They are
// replayed from the database's copy, which outlives the broker's.
type ReplayParked struct {
	*beat
	parking port.Parking
	settle  *SettleDeductions
	decode  Decode
	cfg     ReplayConfig
	log     *slog.Logger
}

var _ Runner = (*ReplayParked)(nil)

// NewReplayParked wires the use case.
func NewReplayParked(parking port.Parking, settle *SettleDeductions, decode Decode, cfg ReplayConfig, log *slog.Logger) *ReplayParked {
	r := &ReplayParked{parking: parking, settle: settle, decode: decode, cfg: cfg, log: log}
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
	var ids []string
	var deliveries []port.Delivery
	for _, p := range parked {
		batch, err := r.decode(p.Body)
		if err != nil {
			r.log.WarnContext(ctx, "a parked message cannot be read", "event", "replay_unreadable", "parked", p.ID, "error", err)
			continue
		}
		ids = append(ids, p.ID)
		deliveries = append(deliveries, port.Delivery{Batch: batch, Body: p.Body, Origin: p.Origin})
	}
	var finished []string
	for i, ok := range r.settle.Replay(ctx, deliveries) {
		if ok {
			finished = append(finished, ids[i])
		}
	}
	if len(finished) > 0 {
		err = r.parking.MarkReplayed(ctx, finished)
	}
	return len(parked) == r.cfg.PageMax, len(finished), err
}

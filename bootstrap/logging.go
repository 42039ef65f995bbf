package bootstrap

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"seckill/adapters/oteltrace"
)

// newLogger writes to w: text on a terminal, JSON elsewhere, unless the settings say which.
func newLogger(c LogConfig, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(c.Level)) // checked with the settings
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		handler = slog.NewTextHandler(w, options)
	}
	if oteltrace.Enabled(os.Getenv) {
		handler = oteltrace.LogHandler(handler)
	}
	return slog.New(handler)
}

// isTerminal reports whether a stream leads to a person.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// redisLog is slog as go-redis wants it: what it says of connections is noise beside our own lines.
type redisLog struct{ log *slog.Logger }

func (r redisLog) Printf(ctx context.Context, format string, v ...any) {
	r.log.DebugContext(ctx, fmt.Sprintf(format, v...), "event", "redis_client")
}

package rocketmq

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// bridge carries the client's log into ours. The client's logger is one for the process, so
// the first Producer or Consumer sets it.
type bridge struct{ log *slog.Logger }

var bridged sync.Once

// BridgeLogs makes the library log through log, for good; the first call wins. Producer and Consumer do it
// at their start; whoever calls EnsureTopic alone does it before.
func BridgeLogs(log *slog.Logger) {
	bridged.Do(func() {
		rlog.SetLogger(bridge{log.With("component", "rocketmq-client")})
		primitive.DefaultPanicHandler = func(cause any) {
			log.Error("the rocketmq client panicked", "event", "rocketmq_client_panic", "panic", fmt.Sprint(cause))
		}
	})
}

// quiet are lines of the client that are part of normal work here, whatever it thinks of them.
var quiet = []string{
	"executeLocalTransaction but state unexpected", // every verdict but commit
	"processQueue is dropped without process",      // the orderly end of a consumer
	"[BUG] ConsumerId not in cidAll",               // while a group changes
	"the cached message",                           // flow control
	"the queue's messages span too long",           // flow control
}

// bodies are fields that hold messages, which are not for the log.
var bodies = map[string]bool{"message": true, "messages": true, "request": true, "response": true, "callback": true}

const fieldMax = 300

func (b bridge) write(level slog.Level, msg string, fields map[string]any) {
	for _, prefix := range quiet {
		if strings.HasPrefix(msg, prefix) {
			level = slog.LevelDebug
		}
	}
	ctx := context.Background()
	if !b.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 1+len(fields))
	attrs = append(attrs, slog.String("event", "rocketmq_client"))
	for name, value := range fields {
		if bodies[name] {
			continue
		}
		// Now, not later: the values are pointers into the living client.
		text := fmt.Sprint(value)
		attrs = append(attrs, slog.String(name, text[:min(len(text), fieldMax)]))
	}
	b.log.LogAttrs(ctx, level, msg[:min(len(msg), fieldMax)], attrs...)
}

// Debug and Info are debug: what the client tells of itself is no news of the service.
func (b bridge) Debug(msg string, fields map[string]any)   { b.write(slog.LevelDebug, msg, fields) }
func (b bridge) Info(msg string, fields map[string]any)    { b.write(slog.LevelDebug, msg, fields) }
func (b bridge) Warning(msg string, fields map[string]any) { b.write(slog.LevelWarn, msg, fields) }
func (b bridge) Error(msg string, fields map[string]any)   { b.write(slog.LevelError, msg, fields) }

// Fatal does not end the process.
func (b bridge) Fatal(msg string, fields map[string]any) { b.write(slog.LevelError, msg, fields) }

func (b bridge) Level(string)            {}
func (b bridge) OutputPath(string) error { return nil }

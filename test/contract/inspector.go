package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/application/port"
)

// InspectorFixture is one inspector of servers that answer, and one of the same adapter whose servers are away.
type InspectorFixture struct {
	Part    string
	Here    func(testing.TB) port.Inspector
	Away    func(testing.TB) port.Inspector // nil: what it looks at cannot be away
	Known   []port.ReadingName              // must be read
	Unknown []port.ReadingName              // cannot be read here
	Secrets []string                        // must not be in any reading
}

// RunInspector holds an adapter against port.Inspector.
func RunInspector(t *testing.T, f InspectorFixture) {
	t.Helper()
	t.Run("reads what it says it reads", func(t *testing.T) {
		t.Parallel()
		found := f.inspect(t.Context(), t, f.Here(t))
		for _, name := range f.Known {
			if !slices.ContainsFunc(found, func(r port.Reading) bool { return r.Name == name && r.Known }) {
				t.Errorf("%s is not read: %+v", name, found)
			}
		}
		for _, name := range f.Unknown {
			if !slices.ContainsFunc(found, func(r port.Reading) bool { return r.Name == name && !r.Known }) {
				t.Errorf("%s should be unknown: %+v", name, found)
			}
		}
	})
	t.Run("a repeat reads the same things", func(t *testing.T) {
		t.Parallel()
		inspector := f.Here(t)
		first, second := namesOf(f.inspect(t.Context(), t, inspector)), namesOf(f.inspect(t.Context(), t, inspector))
		if !slices.Equal(first, second) {
			t.Errorf("first %v, then %v", first, second)
		}
	})
	if f.Away == nil {
		return
	}
	t.Run("what is away is not known and hides nothing", func(t *testing.T) {
		t.Parallel()
		for _, r := range f.inspect(t.Context(), t, f.Away(t)) {
			if r.Known || r.Name != port.ReadReachable {
				t.Errorf("read of a server that is away: %+v", r)
			}
		}
	})
	t.Run("ends with its caller", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, r := range f.inspect(ctx, t, f.Here(t)) {
			if r.Known && r.Name != port.ReadReachable {
				t.Errorf("asked after the end: %+v", r)
			}
		}
	})
}

const inspectWithin = 30 * time.Second // the bound of a test that hangs, not of an inspection

// inspect asks, and checks what holds of every reading.
func (f InspectorFixture) inspect(ctx context.Context, t *testing.T, inspector port.Inspector) []port.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, inspectWithin)
	defer cancel()
	found := inspector.Inspect(ctx)
	if len(found) == 0 {
		t.Error("nothing at all")
	}
	for _, r := range found {
		if r.Part != f.Part || r.Name == "" || !r.Known && (r.Detail == "" || r.Text != "" || r.Number != 0) {
			t.Errorf("not a reading of %s: %+v", f.Part, r)
		}
		for _, secret := range f.Secrets {
			if strings.Contains(fmt.Sprintf("%+v", r), secret) {
				t.Errorf("a secret in %s of %s", r.Name, r.Node)
			}
		}
	}
	return found
}

func namesOf(found []port.Reading) (names []string) {
	for _, r := range found {
		names = append(names, r.Node+" "+string(r.Name))
	}
	slices.Sort(names)
	return names
}

// ShiftedClock is that far ahead of the machine.
type ShiftedClock struct{ Ahead time.Duration }

// Now implements port.Clock.
func (c ShiftedClock) Now() time.Time { return time.Now().Add(c.Ahead) }

package echohttp

import (
	"io"
	"strings"
	"testing"

	"seckill/domain"
)

func TestProfilesOfTheProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text := func(target string) string {
		t.Helper()
		res := f.operate(t, "GET", target, "")
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %s %.200q %v", target, res.Status, body, err)
		}
		return string(body)
	}
	if got := text("/debug/pprof/goroutine?debug=1"); !strings.HasPrefix(got, "goroutine profile: total ") {
		t.Errorf("%.100q", got)
	}
	const gzip = "\x1f\x8b"
	for _, target := range []string{"/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
		if got := text(target); !strings.HasPrefix(got, gzip) {
			t.Errorf("%s: %.100q", target, got)
		}
	}
	wantProblem(t, f.operate(t, "GET", "/debug/pprof/cmdline", ""), 404, codeNoSuchRoute)
	for _, target := range []string{"/debug/pprof/profile?seconds=0", "/debug/pprof/profile?seconds=61", "/debug/pprof/heap?debug=x"} {
		wantProblem(t, f.operate(t, "GET", target, ""), 400, domain.CodeInvalidRequest)
	}
}

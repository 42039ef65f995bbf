package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"seckill/adapters/echohttp"
	"seckill/application"
)

const testKey = "a-key-for-tests-of-at-least-32-bytes"

// TestMain lets the test binary be the bare server that the command starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		main()
		return
	}
	os.Exit(m.Run())
}

// operators is an operators' door whose pipeline applies eight rows in one batch at every look.
func operators(t *testing.T, verdict string) string {
	t.Helper()
	var rows atomic.Int64
	answer := func(v func(r *http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(v(r)) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/admin/v1/products/{id}", answer(func(*http.Request) any {
		return application.StockView{State: "open", Gate: &application.GateSide{}}
	}))
	mux.HandleFunc("/admin/v1/pipeline", answer(func(*http.Request) any {
		var none int64
		n := rows.Add(8)
		return application.PipelineView{OpenFlows: &none, BatchedCommands: n, Batches: n / 8, AppliedRows: n, AppliedGroups: n / 8}
	}))
	mux.HandleFunc("/admin/v1/verification", answer(func(*http.Request) any {
		return application.Verification{Confirmed: 1 << 40, Invariants: []application.InvariantResult{{Name: "B", Verdict: verdict}}}
	}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func buyers(t *testing.T) string {
	t.Helper()
	tokens, err := echohttp.NewTokens([]byte(testKey), "seckill", "seckill")
	if err != nil {
		t.Fatal(err)
	}
	cfg := echohttp.DefaultConfig()
	cfg.Tokens = tokens
	server := httptest.NewServer(echohttp.Bare(cfg))
	t.Cleanup(server.Close)
	return server.URL
}

func arguments(t *testing.T, folder, verdict string) []string {
	t.Setenv(keyVariable, testKey)
	return []string{"-target", buyers(t), "-admin", operators(t, verdict), "-out", folder, "-window", "100ms", "-warm-up", "0s",
		"-runs", "2", "-connections", "4", "-buyers", "10", "-figures", "1,3,5"}
}

func TestAMeasurementLeavesItsResult(t *testing.T) {
	folder := t.TempDir()
	if err := measure(t.Context(), arguments(t, folder, "holds")); err != nil {
		t.Fatal(err)
	}
	var r result
	var detail map[string]map[string]*spread
	read(t, filepath.Join(folder, "result.json"), &r)
	read(t, filepath.Join(folder, "detail.json"), &detail)
	if len(r.Figures) != len(figures) || r.Commit == "" || r.Versions["Go"] == "" || r.Machine.CPUs == 0 {
		t.Fatalf("%+v", r)
	}
	for _, o := range r.Figures {
		switch o.ID {
		case "1a", "1c", "3":
			if o.Figure == nil || o.Runs != 2 || o.Met == nil || *o.Min > *o.Figure || *o.Max < *o.Figure {
				t.Errorf("%s: %+v", o.ID, o)
			}
		case "1b", "5a": // need the servers
			if o.Met != nil || o.Figure != nil || o.NotRun != errNeeds.Error() {
				t.Errorf("%s: %+v", o.ID, o)
			}
		default:
			if o.Met != nil && figureByID(o.ID).number() != "5" {
				t.Errorf("%s was not asked for: %+v", o.ID, o)
			}
		}
	}
	for scenario, value := range map[string]string{"bare": "acceptedPerSecond", "sales": "acceptedPerSecond", "refusals": "p99Millis"} {
		times := 2
		if scenario == "bare" {
			times = 8 // before and after each of the others
		}
		if v := detail[scenario][value]; v == nil || len(v.All) != times || v.Min <= 0 || v.Median < v.Min || v.Max < v.Median {
			t.Errorf("%s %s: %+v", scenario, value, v)
		}
	}
	if v := detail["sales"]["meanDeductBatch"]; v == nil || v.Median != 8 {
		t.Errorf("mean batch: %+v", v)
	}
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func TestSpeedBoughtWithABrokenInvariantIsNoResult(t *testing.T) {
	folder := t.TempDir()
	if err := measure(t.Context(), arguments(t, folder, "broken")); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(folder, "result.json")); err == nil {
		t.Error("a result was written")
	}
}

func TestSettingsAreRefused(t *testing.T) {
	t.Setenv(keyVariable, "")
	for _, args := range [][]string{{}, {"-target", "http://a", "-admin", "http://b"}, {"-binary", "x", "-target", "http://a"},
		{"-binary", "x", "-many", "0"}, {"-binary", "x", "-connections", "0"},
		{"-binary", "x", "-figures", "1,15"}, {"-binary", "x", "-filled", "10", "-ground", "11"}, {"-binary", "x", "stray"}} {
		if _, err := readSettings(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestDoorsAreFoundInWhatAServerPrints(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"event":"serving","buyers":"http://127.0.0.1:4711","operators":"http://127.0.0.1:8081"}`: "http://127.0.0.1:4711",
		`  Buyers    http://127.0.0.1:8080/docs`:                                                   "",
		`{"event":"started","buyers":"http://127.0.0.1:4711"}`:                                     "",
	} {
		if got, found := servingOf([]byte(line)); found != (want != "") || found && got.Buyers != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

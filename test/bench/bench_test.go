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
	return []string{"-target", buyers(t), "-admin", operators(t, verdict), "-out", folder, "-window", "100ms",
		"-runs", "2", "-connections", "4", "-buyers", "10", "-products", "1,3"}
}

func TestAMeasurementLeavesItsResult(t *testing.T) {
	folder := t.TempDir()
	if err := measure(t.Context(), arguments(t, folder, "holds")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(folder, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != 6 { // bare, sales and refusals, each on 1 and on 3 products
		t.Fatalf("%s", b)
	}
	for _, s := range r.Scenarios {
		if s.Scenario == "refusals" { // the bare door refuses nobody
			continue
		}
		if v := s.Values["acceptedPerSecond"]; v == nil || len(v.All) != 2 || v.Min <= 0 || v.Median < v.Min || v.Max < v.Median {
			t.Errorf("%s on %d: %+v", s.Scenario, s.Products, v)
		}
		if v := s.Values["meanDeductBatch"]; s.Scenario == "sales" && (v == nil || v.Median != 8) {
			t.Errorf("mean batch: %+v", v)
		}
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
		{"-binary", "x", "-products", "0"}, {"-binary", "x", "-connections", "0"}} {
		if _, err := readSettings(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestDoorsAreFoundInWhatAServerPrints(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"buyers http://127.0.0.1:4711":                       "http://127.0.0.1:4711",
		"  Operators http://127.0.0.1:8081/console (signed)": "http://127.0.0.1:8081",
		"nothing to see":                                     "",
	} {
		got := ""
		if m := doorLine.FindStringSubmatch(line); m != nil {
			got = m[2]
		}
		if got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}

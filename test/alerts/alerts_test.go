package alerts

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	deploy      = "../../bootstrap/deploy/"
	rulesFile   = deploy + "prometheus/alerts.yaml"
	ruleTests   = deploy + "prometheus/alerts_test.yaml"
	dashboard   = deploy + "grafana/seckill.json"
	runbookFile = deploy + "runbook.md"
	metricsList = "../../bootstrap/reference/metrics.md"
)

type alert struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alertsOf(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	readYAML(t, rulesFile, &file)
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) != 10 {
		t.Fatalf("%+v", file)
	}
	return file.Groups[0].Rules
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// panel is one of the dashboard's, or a row's title.
type panel struct {
	Type, Title string
	Targets     []struct{ Expr string }
}

func panelsOf(t *testing.T) []panel {
	t.Helper()
	var file struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, dashboard)), &file); err != nil {
		t.Fatal(err)
	}
	return file.Panels
}

func queriesOf(t *testing.T) (all []string) {
	t.Helper()
	for _, p := range panelsOf(t) {
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	return all
}

var (
	listed   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) ")
	metric   = regexp.MustCompile(`\b(?:seckill|http_server|go|process)_[a-z_]+\b`)
	ownWords = []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "go_memstats_heap_alloc_bytes", "go_goroutines"} // of every Go client
)

// known are the names of the samples that the service has.
func known(t *testing.T) []string {
	t.Helper()
	names := slices.Clone(ownWords)
	for _, m := range listed.FindAllStringSubmatch(read(t, metricsList), -1) {
		names = append(names, m[1])
		if m[2] == "histogram" {
			names = append(names, m[1]+"_bucket", m[1]+"_sum", m[1]+"_count")
		}
	}
	if len(names) < 60 {
		t.Fatalf("only %d metrics are listed", len(names))
	}
	return names
}

func TestEveryMetricOfARuleOrAPanelExists(t *testing.T) {
	t.Parallel()
	names, seen := known(t), 0
	queries := queriesOf(t)
	for _, a := range alertsOf(t) {
		queries = append(queries, a.Expr)
	}
	for _, q := range queries {
		for _, name := range metric.FindAllString(q, -1) {
			seen++
			if !slices.Contains(names, name) {
				t.Errorf("%s is no metric: %s", name, q)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d names were found", seen)
	}
}

func TestEachAlertSaysWhatToDoAndIsTestedBothWays(t *testing.T) {
	t.Parallel()
	var tests struct {
		Tests []struct {
			Rules []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, ruleTests, &tests)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			if len(r.Expected) > 0 {
				fires[r.Alertname] = true
			} else {
				silent[r.Alertname] = true
			}
		}
	}
	runbook := read(t, runbookFile)
	for _, a := range alertsOf(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: a test that fires %v, one that is silent %v", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		if level := a.Labels["severity"]; level != "page" && level != "ticket" {
			t.Errorf("%s: severity %q", a.Alert, level)
		}
		if a.Annotations["summary"] == "" || !strings.Contains(a.Annotations["description"], "$value") {
			t.Errorf("%s: %v", a.Alert, a.Annotations)
		}
		if want := "bootstrap/deploy/runbook.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(runbook, "\n## "+a.Alert+"\n\n**Buyers** ") {
			t.Errorf("%s: no section of the runbook that begins with what buyers notice", a.Alert)
		}
	}
}

func TestTheDashboardHasItsRows(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, p := range panelsOf(t) {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		} else if len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
	}
	if want := []string{"Sale", "Answer time", "Gate", "Broker", "Apply", "Truth", "Process"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}

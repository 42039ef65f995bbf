//go:build stack

package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"seckill/test/harness"
)

func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), harness.Promtool(t), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestPromtoolTakesTheRulesAndTheirTestsPass(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", ruleTests)
}

// Grafana's variables are replaced as it would; each query is then a recording rule of its own.
func TestPromtoolTakesEveryQueryOfTheDashboard(t *testing.T) {
	t.Parallel()
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	all := group{Name: "dashboard"}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$product", ".*")
	for i, q := range queriesOf(t) {
		all.Rules = append(all.Rules, rule{fmt.Sprintf("dashboard:query:%d", i), variables.Replace(q)})
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {all}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "$") {
		t.Error("a variable is left")
	}
	promtool(t, "check", "rules", path)
}

package harness_test

import (
	"regexp"
	"strings"
	"testing"

	"seckill/test/harness"
)

func TestUniqueIDServesAsProductTopicAndDatabase(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[a-z][a-z0-9]{7,30}$`)
	seen := map[string]bool{}
	for range 1_000 {
		id := harness.UniqueID(t)
		if !valid.MatchString(id) || seen[id] {
			t.Fatalf("%q is malformed or a repeat", id)
		}
		seen[id] = true
	}
}

func TestAMissingPartIsNamedWithTheCommandThatBringsIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := harness.Start(t.Context(), harness.Parts{Redis: true, RocketMQ: true}, t.TempDir())
	if err == nil {
		t.Fatal("started without programs")
	}
	for _, part := range []string{"redis-server", "java", "RocketMQ", "apt-get install", harness.InstallCommand} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in: %v", part, err)
		}
	}
}

package check

import (
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func TestTheDockerfileEndsAsNobodysStaticBinary(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("warnings: %+v", parsed.Warnings)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	user, healthy := "", false
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			healthy = true
		case *instructions.RunCommand:
			t.Errorf("the image has no shell to run %v", c.CmdLine)
		}
	}
	if last.BaseName != "scratch" || user == "" || strings.HasPrefix(user, "0") || user == "root" || !healthy {
		t.Errorf("base %q, user %q, health check %v", last.BaseName, user, healthy)
	}
}

func TestComposeLoadsAndMountsWhatIsThere(t *testing.T) {
	t.Parallel()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  "..",
		ConfigFiles: []types.ConfigFile{{Filename: "../compose.yaml"}},
		Environment: types.Mapping{"SECKILL_AUTH__KEY": strings.Repeat("k", 32), "DATABASE_PASSWORD": "secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
		if strings.HasSuffix(service.Image, ":latest") {
			t.Errorf("%s takes whatever image is the latest", name)
		}
	}
	if dsn := project.Services["seckill"].Environment["SECKILL_DATABASE__DSN"]; dsn == nil || *dsn != "seckill:secret@tcp(database:3306)/seckill" {
		t.Errorf("the service's settings are not those of compose.yaml: %v", project.Services["seckill"].Environment)
	}
}

func TestComposeNeedsItsSecrets(t *testing.T) {
	t.Parallel()
	_, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: "../compose.yaml"}},
	})
	if err == nil || !strings.Contains(err.Error(), "SECKILL_AUTH__KEY") && !strings.Contains(err.Error(), "DATABASE_PASSWORD") {
		t.Errorf("without secrets: %v", err)
	}
}

package bootstrap

import (
	"bytes"
	"strings"
	"testing"
)

func TestAWrongWordOnTheCommandLineIsAUsageError(t *testing.T) {
	for line, says := range map[string]string{
		"stray":                            "stray",
		"migrate stray":                    "stray",
		"serve stray":                      "stray",
		"verify --nope":                    "--nope",
		"token":                            "--sub",
		"verify -o xml":                    "xml",
		"parked stray":                     "stray",
		"parked replay":                    "--reason",
		"parked replay id --reason poison": "--reason",
	} {
		var out, fault bytes.Buffer
		if code := Main(strings.Fields(line), &out, &fault, "test"); code != ExitUsage || !strings.Contains(fault.String(), says) {
			t.Errorf("seckill %s: exit code %d, %s", line, code, fault.String())
		}
	}
	for _, line := range []string{"", "migrate", "--help", "version"} {
		var out, fault bytes.Buffer
		if code := Main(strings.Fields(line), &out, &fault, "test"); code != ExitFine || out.Len() == 0 || fault.Len() > 0 {
			t.Errorf("seckill %s: exit code %d, %s", line, code, fault.String())
		}
	}
}

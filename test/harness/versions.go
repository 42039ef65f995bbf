package harness

import (
	"os/exec"
	"regexp"
)

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)*`)

// Versions are those of the servers that the harness starts, by name; one that does not say is left out.
func Versions() map[string]string {
	versions := map[string]string{"RocketMQ": rocketmqVersion}
	for name, program := range map[string]string{"Redis": "redis-server", "MariaDB": "mariadbd"} {
		path := find(program)
		if path == "" {
			continue
		}
		out, err := exec.Command(path, "--version").Output()
		if number := versionNumber.Find(out); err == nil && number != nil {
			versions[name] = string(number)
		}
	}
	return versions
}

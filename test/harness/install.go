package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// InstallCommand is what to run when a part is missing.
const InstallCommand = "go run ./test/harness/stack install"

// rocketmqVersion is the newest that does not spin: the transaction thread of
// 5.5.0 takes a whole core after the first transactional message.
const rocketmqVersion = "5.4.0"

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>seckill</groupId>
  <artifactId>test-broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-namesrv</artifactId>
      <version>` + rocketmqVersion + `</version>
    </dependency>
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-broker</artifactId>
      <version>` + rocketmqVersion + `</version>
    </dependency>
  </dependencies>
</project>
`

// program is something that has to be on the machine, and its Debian packages,
// by blanks.
type program struct{ name, debian string }

func programs(parts Parts) []program {
	var list []program
	if parts.Redis || parts.Cluster {
		list = append(list, program{"redis-server", "redis-server"}, program{"redis-cli", "redis-tools"})
	}
	if parts.MySQL {
		list = append(list, program{"mariadbd", "mariadb-server"}, program{"mariadb-install-db", "mariadb-server"})
	}
	if parts.RocketMQ {
		list = append(list, program{"java", "openjdk-17-jdk-headless"})
	}
	if parts.Clocks {
		list = append(list, program{"faketime", "faketime"})
	}
	if parts.Disk && os.Geteuid() == 0 { // nobody else may mount
		list = append(list, program{"xfs_io", "xfsprogs"}, program{"mkfs.ext4", "e2fsprogs"}, program{"mount", "mount"})
	}
	if parts.Browser {
		list = append(list, program{"chromium", "chromium fonts-dejavu-core"})
	}
	return list
}

// missing names every part that is not there and how to get it.
func missing(parts Parts) error {
	var faults []error
	for _, p := range programs(parts) {
		if find(p.name) == "" {
			faults = append(faults, fmt.Errorf("%s is missing: apt-get install -y --no-install-recommends %s", p.name, p.debian))
		}
	}
	if parts.RocketMQ && !rocketmqInstalled() {
		faults = append(faults, fmt.Errorf("RocketMQ %s is missing in %s: %s", rocketmqVersion, rocketmqLib(), InstallCommand))
	}
	if parts.Rules && promtool() == "" {
		faults = append(faults, fmt.Errorf("promtool is missing, also in %s: %s", filepath.Dir(promtoolPath()), InstallCommand))
	}
	if len(faults) > 0 {
		faults = append(faults, errors.New("all at once, as root on Debian: "+InstallCommand))
	}
	return errors.Join(faults...)
}

// Install brings what the parts and the race detector need and is not there:
// programs by apt-get, where that exists and we are root, RocketMQ's jars by
// Maven and promtool out of Debian's package into a cache folder.
// Progress goes to out. Nothing happens when all is there.
func Install(ctx context.Context, parts Parts, out io.Writer) error {
	needed := append(programs(parts), program{"gcc", "gcc libc6-dev"}) // go test -race links by it
	if parts.RocketMQ && !rocketmqInstalled() {
		needed = append(needed, program{"mvn", "maven"})
	}
	var packages []string
	for _, p := range needed {
		if find(p.name) == "" {
			packages = append(packages, strings.Fields(p.debian)...)
		}
	}
	if len(packages) > 0 {
		if err := aptInstall(ctx, packages, out); err != nil {
			return err
		}
	}
	if parts.RocketMQ && !rocketmqInstalled() {
		if err := mavenInstall(ctx, out); err != nil {
			return err
		}
	}
	if parts.Rules && promtool() == "" {
		if err := promtoolInstall(ctx, out); err != nil {
			return err
		}
	}
	return missing(parts)
}

func aptInstall(ctx context.Context, packages []string, out io.Writer) error {
	wanted := strings.Join(packages, " ")
	if find("apt-get") == "" || os.Geteuid() != 0 {
		return fmt.Errorf("missing on this machine: %s (names of Debian's packages; as root there: apt-get install -y --no-install-recommends %s)", wanted, wanted)
	}
	fmt.Fprintln(out, "installing", wanted)
	for _, args := range [][]string{
		{"update", "-qq"},
		append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(ctx, find("apt-get"), append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// mavenInstall fills a folder beside the cache's place and renames it: a broken
// download is never taken for a whole one, and two installers do no harm.
func mavenInstall(ctx context.Context, out io.Writer) error {
	home := filepath.Dir(rocketmqLib())
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(home), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // gone already when all went well
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), []byte(pom), 0o600); err != nil {
		return err
	}
	fmt.Fprintln(out, "fetching RocketMQ", rocketmqVersion, "into", home)
	cmd := exec.CommandContext(ctx, find("mvn"), "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w", err)
	}
	if err := os.Rename(work, home); err != nil && !rocketmqInstalled() {
		return err
	}
	return nil
}

// promtoolInstall takes the one program out of Debian's package: installed whole, that would start a Prometheus.
func promtoolInstall(ctx context.Context, out io.Writer) error {
	home := filepath.Dir(promtoolPath())
	if find("apt-get") == "" {
		return fmt.Errorf("promtool is missing on this machine: put it on the PATH, or into %s", home)
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(home, "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	fmt.Fprintln(out, "fetching promtool into", home)
	const fetch = `apt-get download -q prometheus || { apt-get update -qq && apt-get download -q prometheus; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool`
	cmd := exec.CommandContext(ctx, "sh", "-ec", fetch)
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("promtool out of Debian's package prometheus: %w", err)
	}
	return os.Rename(filepath.Join(work, "usr", "bin", "promtool"), promtoolPath())
}

// promtool is where the program is, "" where it is missing.
func promtool() string {
	if path := find("promtool"); path != "" {
		return path
	}
	return find(promtoolPath())
}

func promtoolPath() string { return filepath.Join(cacheFolder(), "promtool", "promtool") }

// cacheFolder has what is not installed for the whole machine.
func cacheFolder() string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "seckill")
}

func rocketmqLib() string { return filepath.Join(cacheFolder(), "rocketmq-"+rocketmqVersion, "lib") }

func rocketmqInstalled() bool {
	_, err := os.Stat(filepath.Join(rocketmqLib(), "rocketmq-broker-"+rocketmqVersion+".jar"))
	return err == nil
}

// find is exec.LookPath that also looks where Debian keeps servers, which is not
// on everyone's PATH. It returns "" when there is no such program.
func find(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

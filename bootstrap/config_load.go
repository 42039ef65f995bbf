package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix = "SECKILL_"
	envFile   = "SECKILL_CONFIG" // path of the optional file
)

// Kubernetes gives every container such variables for a service that is named like this program.
var injectedByKubernetes = regexp.MustCompile(`^SECKILL_(PORT|SERVICE_HOST|SERVICE_PORT)(_.*)?$`)

// LoadConfig reads defaults, then the optional YAML file at path (empty: $SECKILL_CONFIG),
// then the environment, then flags (key → value), later over earlier, and lists every
// mistake at once, unknown keys among them.
func LoadConfig(path string, environ []string, flags map[string]any) (Config, error) {
	k := koanf.New(".")
	defaults := DefaultConfig()
	if err := k.Load(structs.Provider(defaults, "koanf"), nil); err != nil {
		return Config{}, err
	}
	known := k.Keys()
	if path == "" {
		path = lookup(environ, envFile)
	}
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return Config{}, fmt.Errorf("settings file: %w", err)
		}
	}
	if err := k.Load(env.Provider(".", env.Opt{
		Prefix: envPrefix, TransformFunc: keyOfVariable, EnvironFunc: func() []string { return environ },
	}), nil); err != nil {
		return Config{}, err
	}
	if err := k.Load(confmap.Provider(flags, "."), nil); err != nil {
		return Config{}, err
	}
	var c Config
	unknown := unknownKeys(k.Keys(), known)
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		Result: &c, WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	}})
	if err := errors.Join(unknown, err); err != nil {
		return Config{}, err
	}
	if c.HTTP.Addr == "" {
		c.HTTP.Addr = ":8080"
		if c.Embedded() {
			c.HTTP.Addr = "127.0.0.1:8080"
		}
	}
	if err := errors.Join(c.readSecretFiles(), c.Validate()); err != nil {
		return Config{}, err
	}
	return c, nil
}

func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// keyOfVariable turns SECKILL_HTTP__ADDR into http.addr; two underscores part levels.
func keyOfVariable(name, value string) (string, any) {
	if name == envFile || injectedByKubernetes.MatchString(name) {
		return "", nil
	}
	key := strings.ToLower(strings.TrimPrefix(name, envPrefix))
	return strings.ReplaceAll(key, "__", "."), value
}

func unknownKeys(keys, known []string) error {
	var faults []error
	for _, key := range keys {
		if !slices.Contains(known, key) {
			faults = append(faults, fmt.Errorf("%s: no such setting; the nearest is %s (%s)", key,
				nearest(key, known), variableOfKey(nearest(key, known))))
		}
	}
	return errors.Join(faults...)
}

func variableOfKey(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

// nearest is the known key that shares the most pairs of letters with key.
func nearest(key string, known []string) string {
	best, bestScore := "", -1
	for _, candidate := range known {
		score := -abs(len(candidate) - len(key))
		for i := 0; i+2 <= len(key); i++ {
			if strings.Contains(candidate, key[i:i+2]) {
				score += 3
			}
		}
		if best == "" || score > bestScore {
			best, bestScore = candidate, score
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// Environ is the process's environment, as LoadConfig takes it.
func Environ() []string { return os.Environ() }

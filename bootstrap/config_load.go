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

// injectedByKubernetes are the variables that Kubernetes gives every container for a service whose name is, or
// begins with, this program's. None of them has the two underscores that part levels.
var injectedByKubernetes = regexp.MustCompile(
	`^SECKILL_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// LoadConfig reads defaults, then the optional YAML file at path (empty: $SECKILL_CONFIG),
// then the environment, then flags (key → value), later over earlier, and lists every
// mistake at once, unknown keys among them.
func LoadConfig(path string, environ []string, flags map[string]any) (Config, error) {
	s, err := readSettings(path, environ, flags)
	if err != nil {
		return Config{}, err
	}
	return s.config, nil
}

// The origins of a value.
const (
	originDefault = "default"
	originFile    = "file"
	originEnv     = "environment"
	originFlag    = "flag"
)

// settings are what LoadConfig found, with where each value comes from. They are there also beside an
// error, as far as they could be read.
type settings struct {
	config  Config
	values  *koanf.Koanf
	origins map[string]string // by key
}

func readSettings(path string, environ []string, flags map[string]any) (s settings, err error) {
	s = settings{values: koanf.New("."), origins: map[string]string{}}
	if err := s.load(originDefault, structs.Provider(DefaultConfig(), "koanf"), nil); err != nil {
		return s, err
	}
	known := s.values.Keys()
	if path == "" {
		path = lookup(environ, envFile)
	}
	if path != "" {
		if err := s.load(originFile, file.Provider(path), yaml.Parser()); err != nil {
			return s, fmt.Errorf("settings file: %w", err)
		}
	}
	fromEnv := env.Provider(".", env.Opt{
		Prefix: envPrefix, TransformFunc: keyOfVariable, EnvironFunc: func() []string { return environ },
	})
	if err := errors.Join(s.load(originEnv, fromEnv, nil), s.load(originFlag, confmap.Provider(flags, "."), nil)); err != nil {
		return s, err
	}
	err = s.values.UnmarshalWithConf("", &s.config, koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		Result: &s.config, WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	}})
	if err := errors.Join(unknownKeys(s.values.Keys(), known), err); err != nil {
		return s, err
	}
	if s.config.HTTP.Addr == "" {
		s.config.HTTP.Addr = ":8080"
		if s.config.Embedded() {
			s.config.HTTP.Addr = "127.0.0.1:8080"
		}
	}
	return s, errors.Join(s.config.readSecretFiles(), s.config.Validate())
}

// load lays one source over those before it.
func (s settings) load(origin string, from koanf.Provider, parser koanf.Parser) error {
	layer := koanf.New(".")
	if err := layer.Load(from, parser); err != nil {
		return err
	}
	for _, key := range layer.Keys() {
		s.origins[key] = origin
	}
	return s.values.Merge(layer)
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
	injected := !strings.Contains(name, "__") && injectedByKubernetes.MatchString(name)
	if name == envFile || injected {
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

package bootstrap

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
)

// Setting is one key of Config with its meaning.
type Setting struct {
	Key      string `json:"key"`
	Variable string `json:"variable"` // of the environment
	Type     string `json:"type"`     // text, number, duration, yes-or-no, list, secret
	Default  string `json:"default"`
	Meaning  string `json:"meaning"`
}

// Secret reports whether the value is never shown.
func (s Setting) Secret() bool { return s.Type == typeSecret }

const typeSecret = "secret"

// Settings lists every key, in the order of Config.
func Settings() []Setting {
	defaults := koanf.New(".")
	_ = defaults.Load(structs.Provider(DefaultConfig(), "koanf"), nil) // a struct can always be read
	var all []Setting
	var walk func(reflect.Type, string)
	walk = func(t reflect.Type, prefix string) {
		for i := range t.NumField() {
			f := t.Field(i)
			key := prefix + f.Tag.Get("koanf")
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, key+".")
				continue
			}
			all = append(all, Setting{Key: key, Variable: variableOfKey(key), Type: typeOf(f.Type),
				Default: textOf(defaults.Get(key)), Meaning: f.Tag.Get("doc")})
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return all
}

func typeOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Secret]():
		return typeSecret
	case reflect.TypeFor[time.Duration]():
		return "duration"
	}
	switch t.Kind() { //nolint:exhaustive // a kind that no setting has is shown by its name
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "yes-or-no"
	case reflect.Slice:
		return "list"
	case reflect.Int:
		return "number"
	}
	return t.String()
}

func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ",")
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = fmt.Sprint(one)
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}

// effectiveSetting is one key as a command meets it.
type effectiveSetting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // default, file, environment, flag; of a secret also the setting that names its file
}

// effective lists every key with its value, secrets hidden.
func (s settings) effective() []effectiveSetting {
	secrets := map[string]Secret{"auth.key": s.config.Auth.Key, "console.token": s.config.Console.Token, "redis.password": s.config.Redis.Password,
		"redis.sentinel_password": s.config.Redis.SentinelPassword, "rocketmq.secret_key": s.config.RocketMQ.SecretKey,
		"database.dsn": s.config.Database.DSN}
	var all []effectiveSetting
	for _, one := range Settings() {
		e := effectiveSetting{one.Key, textOf(s.values.Get(one.Key)), s.origins[one.Key]}
		switch {
		case one.Secret():
			if named := s.origins[one.Key+"_file"]; e.Value == "" && named != originDefault {
				e.Origin = one.Key + "_file, " + named
			}
			e.Value = max(Secret(e.Value).String(), secrets[one.Key].String()) // either is hidden, or empty
		case one.Key == "http.addr" && e.Value == "":
			e.Value = s.config.HTTP.Addr
		}
		all = append(all, e)
	}
	return all
}

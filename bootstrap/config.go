package bootstrap

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"seckill/adapters/faultpoint"
	"seckill/application"
)

// The profiles.
const (
	ProfileEmbedded = "embedded" // everything in this process, data in one folder
	ProfileStack    = "stack"    // Redis, RocketMQ and a MySQL-protocol database
)

// Config is every setting with its name in a file and its meaning; the environment spells `http.addr`
// as SECKILL_HTTP__ADDR. Durations need a unit.
type Config struct {
	Profile   string          `koanf:"profile" doc:"embedded: everything in this process; stack: Redis, RocketMQ and a MySQL-protocol database"`
	Data      string          `koanf:"data" doc:"folder of the embedded profile"`
	HTTP      HTTPConfig      `koanf:"http"`
	Admin     AdminConfig     `koanf:"admin"`
	Auth      AuthConfig      `koanf:"auth"`
	Console   ConsoleConfig   `koanf:"console"`
	Redis     RedisConfig     `koanf:"redis"`
	RocketMQ  RocketMQConfig  `koanf:"rocketmq"`
	Database  DatabaseConfig  `koanf:"database"`
	Deduct    DeductConfig    `koanf:"deduct"`
	Relay     RelayConfig     `koanf:"relay"`
	Reconcile ReconcileConfig `koanf:"reconcile"`
	Log       LogConfig       `koanf:"log"`
	Stop      StopConfig      `koanf:"stop"`
	Fault     FaultConfig     `koanf:"fault"`
}

// HTTPConfig is the buyers' door.
type HTTPConfig struct {
	Addr        string `koanf:"addr" doc:"host:port of the buyers' door; empty: 127.0.0.1:8080 in the embedded profile, :8080 else; port 0 takes a free one"`
	InFlightMax int    `koanf:"in_flight_max" doc:"requests at work at once; more are answered busy"`
	BuyerRate   int    `koanf:"buyer_rate" doc:"requests a second of one buyer, for each instance; more are answered 429; 0: as many as come"`
	BuyerBurst  int    `koanf:"buyer_burst" doc:"requests that a buyer who was quiet may make at once; at least http.buyer_rate"`
}

// AdminConfig is the operators' door.
type AdminConfig struct {
	Addr string `koanf:"addr" doc:"host:port of the operators' door; port 0 takes a free one"`
}

// AuthConfig is how bearer tokens are checked: HS256 with a key of at least 32 bytes.
type AuthConfig struct {
	Key      Secret `koanf:"key" doc:"signs bearer tokens (HS256), 32 bytes or more; the embedded profile makes one of its own"`
	KeyFile  string `koanf:"key_file" doc:"file with auth.key"`
	Issuer   string `koanf:"issuer" doc:"iss that a token must name; empty: any"`
	Audience string `koanf:"audience" doc:"aud that a token must name; empty: any"`
}

// ConsoleConfig is a way into the console that outlives every printed link.
type ConsoleConfig struct {
	Token     Secret `koanf:"token" doc:"signs in at the console with every operator's scope, beside bearer tokens; 32 letters, digits and -._~ or more; empty: none"`
	TokenFile string `koanf:"token_file" doc:"file with console.token"`
}

// RedisConfig names the gate's servers: one address, several of a cluster, or sentinels' with their
// name of the master.
type RedisConfig struct {
	Addrs        []string `koanf:"addrs" doc:"host:port of the server, of several of a cluster, or of sentinels; by comma"`
	Master       string   `koanf:"master" doc:"the name by which sentinels know the master; empty: no sentinels"`
	Username     string   `koanf:"username" doc:"user of Redis' ACL"`
	Password     Secret   `koanf:"password" doc:"password of that user"`
	PasswordFile string   `koanf:"password_file" doc:"file with redis.password"`

	SentinelUsername     string `koanf:"sentinel_username" doc:"user of the sentinels"`
	SentinelPassword     Secret `koanf:"sentinel_password" doc:"password of that user"`
	SentinelPasswordFile string `koanf:"sentinel_password_file" doc:"file with redis.sentinel_password"`
}

// RocketMQConfig names the broker. The check times are the broker's own transactionTimeOut and
// transactionCheckInterval: the check window is made of them.
type RocketMQConfig struct {
	NameServers   []string      `koanf:"name_servers" doc:"host:port of the name servers, by comma"`
	Broker        string        `koanf:"broker" doc:"host:port of a broker, for migrate up to make the topic; empty: the topic is there already"`
	Topic         string        `koanf:"topic" doc:"topic of the purchases"`
	Tag           string        `koanf:"tag" doc:"tag of the purchases"`
	ProducerGroup string        `koanf:"producer_group" doc:"group of the transactional producer"`
	ConsumerGroup string        `koanf:"consumer_group" doc:"group of the consumer; another one has the broker's whole history applied again"`
	AccessKey     string        `koanf:"access_key" doc:"access key of the broker's ACL"`
	SecretKey     Secret        `koanf:"secret_key" doc:"secret key that belongs to it"`
	SecretKeyFile string        `koanf:"secret_key_file" doc:"file with rocketmq.secret_key"`
	SendTimeout   time.Duration `koanf:"send_timeout" doc:"of one send; after it the outcome is unknown"`
	CheckTimeout  time.Duration `koanf:"check_timeout" doc:"the broker's transactionTimeOut"`
	CheckInterval time.Duration `koanf:"check_interval" doc:"the broker's transactionCheckInterval"`
}

// DatabaseConfig names the ledger.
type DatabaseConfig struct {
	DSN     Secret `koanf:"dsn" doc:"user:password@tcp(host:port)/schema"`
	DSNFile string `koanf:"dsn_file" doc:"file with database.dsn"`
	PoolMax int    `koanf:"pool_max" doc:"open connections"`
}

// DeductConfig bounds the lane. While more than OpenMax flows are open, or no send has succeeded for
// AwayMax, nobody new is taken.
type DeductConfig struct {
	QueueMax   int           `koanf:"queue_max" doc:"purchases that may wait for their turn; more are answered busy"`
	BatchMax   int           `koanf:"batch_max" doc:"purchases that go to Redis, and to the broker, together"`
	SendersMax int           `koanf:"senders_max" doc:"batches under way to the broker at once"`
	OpenMax    int           `koanf:"open_max" doc:"while more flows are open than this, new purchases are answered busy"`
	AwayMax    time.Duration `koanf:"away_max" doc:"while no send has succeeded for so long, new purchases are answered busy"`
}

// RelayConfig says from when on an open flow is sent again.
type RelayConfig struct {
	OpenAge time.Duration `koanf:"open_age" doc:"a flow that stays open for so long is sent again"`
}

// ReconcileConfig is the safety net's schedule.
type ReconcileConfig struct {
	Schedule string        `koanf:"schedule" doc:"when gate and ledger are compared: cron with seconds, UTC"`
	Policy   string        `koanf:"policy" doc:"for open flows without an order: send-again or report-only"`
	SafeAge  time.Duration `koanf:"safe_age" doc:"flows younger than this are left alone"`
}

// LogConfig is what is logged, on stderr.
type LogConfig struct {
	Level  string `koanf:"level" doc:"debug, info, warn or error"`
	Format string `koanf:"format" doc:"json, text, or auto: text on a terminal"`
}

// StopConfig bounds an ordered stop. What has not ended after Grace is cut off; Delay, a part of it, is how
// long the doors go on answering after readiness was turned off, each answer the last of its connection.
type StopConfig struct {
	Grace time.Duration `koanf:"grace" doc:"what has not ended in order after so long is cut off"`
	Delay time.Duration `koanf:"delay" doc:"how long the doors go on answering after readiness was turned off; a part of stop.grace"`
}

// FaultConfig arms fault points and moves the service's clock, for tests alone: see adapters/faultpoint.
// Nothing of it is taken unless Allowed is set.
type FaultConfig struct {
	Allowed     bool          `koanf:"allowed" doc:"for tests alone: lets the two below be set"`
	Points      []string      `koanf:"points" doc:"for tests alone: where the service breaks on purpose"`
	ClockOffset time.Duration `koanf:"clock_offset" doc:"for tests alone: how wrong its clock is"`
}

// Secret hides itself from logs and printed settings.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[hidden]"
}

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// DefaultConfig is what holds where nothing else is said.
func DefaultConfig() Config {
	return Config{
		Profile: ProfileEmbedded,
		Data:    ".seckill",
		HTTP:    HTTPConfig{Addr: "", InFlightMax: 20000},
		Admin:   AdminConfig{Addr: "127.0.0.1:8081"},
		Auth:    AuthConfig{Issuer: "seckill", Audience: "seckill"},
		RocketMQ: RocketMQConfig{
			Topic: "seckill_topic", Tag: "stock_deduct",
			ProducerGroup: "seckill_producer_group", ConsumerGroup: "seckill_consumer_group",
			SendTimeout: 2 * time.Second, CheckTimeout: 10 * time.Second, CheckInterval: 10 * time.Second,
		},
		Database:  DatabaseConfig{PoolMax: 16},
		Deduct:    DeductConfig{QueueMax: 8192, BatchMax: 512, SendersMax: 1, OpenMax: 100_000, AwayMax: 5 * time.Second},
		Relay:     RelayConfig{OpenAge: 5 * time.Second},
		Reconcile: ReconcileConfig{Schedule: "0 0 * * * *", Policy: string(application.PolicySendAgain), SafeAge: time.Minute},
		Log:       LogConfig{Level: "info", Format: "auto"},
		Stop:      StopConfig{Grace: 25 * time.Second, Delay: 250 * time.Millisecond},
	}
}

// Embedded reports whether everything runs in this process.
func (c Config) Embedded() bool { return c.Profile == ProfileEmbedded }

// Validate lists every mistake at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(key, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.Profile != ProfileEmbedded && c.Profile != ProfileStack {
		fault("profile", "%q is neither %s nor %s", c.Profile, ProfileEmbedded, ProfileStack)
	}
	c.validateAddresses(fault)
	if c.Profile == ProfileStack {
		c.validateStack(fault)
	} else if c.Data == "" {
		fault("data", "the embedded profile needs a folder")
	}
	if k := len(c.Auth.Key); k > 0 && k < authKeyMin || k == 0 && c.Profile == ProfileStack {
		fault("auth.key", "must have at least %d bytes (also as auth.key_file)", authKeyMin)
	}
	if c.Console.Token != "" && !consoleToken.MatchString(string(c.Console.Token)) {
		fault("console.token", "must have at least 32 characters, of A-Z a-z 0-9 - . _ ~ (also as console.token_file)")
	}
	c.validateBounds(fault)
	if len(c.Fault.Points) > 0 && !c.Fault.Allowed {
		fault("fault.points", "breaks the service on purpose; fault.allowed is not set")
	}
	if c.Fault.ClockOffset != 0 && !c.Fault.Allowed {
		fault("fault.clock_offset", "makes the service's clock wrong; fault.allowed is not set")
	}
	if _, err := faultpoint.Parse(c.Fault.Points, nil); err != nil {
		fault("fault.points", "%v", err)
	}
	return errors.Join(faults...)
}

const authKeyMin = 32

// consoleToken is what a cookie holds as it is.
var consoleToken = regexp.MustCompile(`^[A-Za-z0-9._~-]{32,512}$`)

func (c Config) validateAddresses(fault func(key, format string, args ...any)) {
	for key, addr := range map[string]string{"http.addr": c.HTTP.Addr, "admin.addr": c.Admin.Addr} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			fault(key, "%q is not host:port", addr)
			continue
		}
		if ip := net.ParseIP(host); c.Embedded() && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			fault(key, "the embedded profile listens on loopback only, not on %q", addr)
		}
	}
}

func (c Config) validateStack(fault func(key, format string, args ...any)) {
	if len(c.Redis.Addrs) == 0 {
		fault("redis.addrs", "is missing")
	}
	if len(c.RocketMQ.NameServers) == 0 {
		fault("rocketmq.name_servers", "is missing")
	}
	if c.Database.DSN == "" {
		fault("database.dsn", "is missing (also as database.dsn_file)")
	}
	for key, v := range map[string]string{"rocketmq.topic": c.RocketMQ.Topic, "rocketmq.tag": c.RocketMQ.Tag,
		"rocketmq.producer_group": c.RocketMQ.ProducerGroup, "rocketmq.consumer_group": c.RocketMQ.ConsumerGroup} {
		if v == "" {
			fault(key, "must not be empty")
		}
	}
}

func (c Config) validateBounds(fault func(key, format string, args ...any)) {
	for key, v := range map[string]int{"http.in_flight_max": c.HTTP.InFlightMax, "database.pool_max": c.Database.PoolMax,
		"deduct.queue_max": c.Deduct.QueueMax, "deduct.batch_max": c.Deduct.BatchMax, "deduct.senders_max": c.Deduct.SendersMax,
		"deduct.open_max": c.Deduct.OpenMax} {
		if v < 1 {
			fault(key, "%d is not a positive number", v)
		}
	}
	for key, v := range map[string]time.Duration{"rocketmq.send_timeout": c.RocketMQ.SendTimeout,
		"rocketmq.check_timeout": c.RocketMQ.CheckTimeout, "rocketmq.check_interval": c.RocketMQ.CheckInterval,
		"relay.open_age": c.Relay.OpenAge, "reconcile.safe_age": c.Reconcile.SafeAge, "stop.grace": c.Stop.Grace,
		"deduct.away_max": c.Deduct.AwayMax} {
		if v <= 0 {
			fault(key, "%v is not a positive time", v)
		}
	}
	for key, v := range map[string]int{"http.buyer_rate": c.HTTP.BuyerRate, "http.buyer_burst": c.HTTP.BuyerBurst} {
		if v < 0 {
			fault(key, "%d is below 0", v)
		}
	}
	if c.Stop.Delay < 0 || c.Stop.Delay >= c.Stop.Grace/2 && c.Stop.Delay > 0 {
		fault("stop.delay", "%v is not between 0 and half of stop.grace", c.Stop.Delay)
	}
	switch application.ReconcilePolicy(c.Reconcile.Policy) {
	case application.PolicySendAgain, application.PolicyReportOnly:
	case application.PolicyRollBack:
		fault("reconcile.policy", "roll-back is an operator's choice and never runs on schedule")
	default:
		fault("reconcile.policy", "%q is neither send-again nor report-only", c.Reconcile.Policy)
	}
	if _, err := scheduleParser.Parse(c.Reconcile.Schedule); err != nil {
		fault("reconcile.schedule", "%v", err)
	}
	if err := new(slog.LevelVar).UnmarshalText([]byte(c.Log.Level)); err != nil {
		fault("log.level", "%q is not a level", c.Log.Level)
	}
	switch c.Log.Format {
	case "json", "text", "auto":
	default:
		fault("log.format", "%q is neither json, text nor auto", c.Log.Format)
	}
}

var scheduleParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// readSecretFiles fills each secret from its file where a file is named; naming both is a mistake.
func (c *Config) readSecretFiles() error {
	var faults []error
	for _, s := range []struct {
		key   string
		value *Secret
		file  string
	}{
		{"auth.key", &c.Auth.Key, c.Auth.KeyFile},
		{"console.token", &c.Console.Token, c.Console.TokenFile},
		{"redis.password", &c.Redis.Password, c.Redis.PasswordFile},
		{"redis.sentinel_password", &c.Redis.SentinelPassword, c.Redis.SentinelPasswordFile},
		{"rocketmq.secret_key", &c.RocketMQ.SecretKey, c.RocketMQ.SecretKeyFile},
		{"database.dsn", &c.Database.DSN, c.Database.DSNFile},
	} {
		if s.file == "" {
			continue
		}
		if *s.value != "" {
			faults = append(faults, fmt.Errorf("%s: set both as a value and as a file", s.key))
			continue
		}
		b, err := os.ReadFile(s.file)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s_file: %w", s.key, err))
			continue
		}
		*s.value = Secret(strings.TrimSpace(string(b)))
	}
	return errors.Join(faults...)
}

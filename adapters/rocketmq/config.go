package rocketmq

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
)

// Config says where the broker is and how it is used. Start from DefaultConfig.
type Config struct {
	NameServers   []string // host:port; a name is resolved again and again
	Topic         string
	Tag           string
	ProducerGroup string
	ConsumerGroup string
	AccessKey     string // empty: the broker asks for none
	SecretKey     string

	SendTimeout      time.Duration // for one try of a half message
	SendersMax       int           // sends under way at one time
	ListenerTimeout  time.Duration // for one local transaction or check-back
	CheckTimeout     time.Duration // the broker's transactionTimeOut
	CheckInterval    time.Duration // the broker's transactionCheckInterval
	CheckSlack       time.Duration // added to the window: a lost connection costs checks for so long
	HandleTimeout    time.Duration // for one call of the handler
	RetryMin         time.Duration // pause before a group is handed over again
	RetryMax         time.Duration // the pause doubles up to this
	GroupsMax        int           // groups at the handler at one time
	GatherMax        int           // messages at which a group takes no more pulls; a pull has at most 32
	CallbacksMax     int           // pulls that wait for a group or are in one
	PulledMax        int           // messages pulled and not finished, of the topic
	PulledMebibytes  int           // the same in MiB
	ConnectTriesMax  int           // tries to find the topic at the start
	ConnectPause     time.Duration // between them
	DirectoryTimeout time.Duration // for one question to the name servers
	GravesPause      time.Duration // between looks for what the broker gave up on, while it never has
}

// DefaultConfig has everything but the names of the topic, the groups and the servers.
func DefaultConfig() Config {
	return Config{
		SendTimeout: 3 * time.Second, SendersMax: 8,
		ListenerTimeout: time.Second, CheckTimeout: 10 * time.Second, CheckInterval: 10 * time.Second, CheckSlack: 30 * time.Second,
		HandleTimeout: 30 * time.Second, RetryMin: 50 * time.Millisecond, RetryMax: 2 * time.Second,
		GroupsMax: 2, GatherMax: 64, CallbacksMax: 64, PulledMax: 8000, PulledMebibytes: 128,
		ConnectTriesMax: 10, ConnectPause: time.Second, DirectoryTimeout: 3 * time.Second, GravesPause: 10 * time.Second,
	}
}

// The remoting client of the library is one for the process, so every client sets the same times. The first shortens a
// dial, which holds a lock; reading must outlast a long poll.
const (
	dialTimeout  = 3 * time.Second
	readTimeout  = 60 * time.Second
	writeTimeout = 5 * time.Second
)

// pullMax is how many messages one pull brings; the broker gives no more.
const pullMax = 32

// instanceName is unique in the world: containers share process ids and addresses.
func instanceName(role string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%s-%d-%s", role, host, os.Getpid(), rand.Text()[:13])
}

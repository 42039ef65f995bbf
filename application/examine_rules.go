package application

import (
	"fmt"
	"strings"
	"time"

	"seckill/application/port"
)

// facts are what rules compare readings with.
type facts struct {
	cfg        ExamineConfig
	unitsLeft  int64 // that may still be sold, of all products
	unitsKnown bool
	queues     int64 // of the topic
	queuesRead bool
}

func (f *facts) read(readings []port.Reading) {
	for _, r := range readings {
		if r.Name == port.ReadTopicQueues && r.Known {
			f.queues, f.queuesRead = r.Number, true
		}
	}
}

// rule judges one kind of reading: what is right, why it matters, how it is changed.
type rule struct {
	want    func(facts) string
	why     string
	change  string
	matters bool // unknown is as bad as wrong
	judge   func(port.Reading, facts) string
	unit    string // of the number, which is shown where there is no text
}

type ruleKey struct {
	part string
	name port.ReadingName
}

// rules is the table. One file a part has its lines.
var rules = func() map[ruleKey]rule {
	all := map[ruleKey]rule{}
	for part, ofPart := range map[string]map[port.ReadingName]rule{port.PartService: serviceRules, port.PartGate: gateRules,
		port.PartBroker: brokerRules, port.PartLedger: ledgerRules} {
		for name, r := range ofPart {
			all[ruleKey{part, name}] = r
		}
	}
	return all
}()

func ruleOf(part string, name port.ReadingName) (rule, bool) {
	r, ruled := rules[ruleKey{part, name}]
	return r, ruled
}

// show is a reading in words.
func (r rule) show(reading port.Reading) string {
	switch {
	case r.unit == "" || reading.Text != "":
		return reading.Text
	case r.unit == "ms":
		return (time.Duration(reading.Number) * time.Millisecond).String()
	case r.unit == "bytes" && reading.Number >= 1<<20:
		return fmt.Sprintf("%d MiB", reading.Number>>20)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", reading.Number, r.unit))
}

func always(words string) func(facts) string { return func(facts) string { return words } }

// wants is a rule on a text that has to be one of some.
func wants(texts ...string) func(port.Reading, facts) string { return textJudge(VerdictWrong, texts) }

// prefers is a rule on a text that is better one of some.
func prefers(texts ...string) func(port.Reading, facts) string { return textJudge(VerdictNote, texts) }

func textJudge(otherwise string, texts []string) func(port.Reading, facts) string {
	return func(r port.Reading, _ facts) string {
		for _, text := range texts {
			if strings.EqualFold(r.Text, text) {
				return VerdictRight
			}
		}
		return otherwise
	}
}

// atLeast is wrong below one number, and a note below the other.
func atLeast(wrong, note int64) func(port.Reading, facts) string {
	return func(r port.Reading, _ facts) string { return graded(r.Number < wrong, r.Number < note) }
}

// atMost is wrong above one number, and a note above the other.
func atMost(note, wrong int64) func(port.Reading, facts) string {
	return func(r port.Reading, _ facts) string { return graded(r.Number > wrong, r.Number > note) }
}

func graded(wrong, note bool) string {
	switch {
	case wrong:
		return VerdictWrong
	case note:
		return VerdictNote
	}
	return VerdictRight
}

// How far a clock may be off.
const (
	clockNote  = 2 * time.Second
	clockWrong = 30 * time.Second
)

// clockRule is the same for every server: all that is judged by a clock is judged by one alone, so a difference
// shows as a window that opens at another time than the shop says.
func clockRule(why string) rule {
	return rule{want: always("within 2s of the service's; wrong from 30s on"), unit: "ms",
		why: why, change: "run an NTP client on both machines (timedatectl set-ntp true) and check it with timedatectl", matters: true,
		judge: func(r port.Reading, _ facts) string {
			off := (time.Duration(r.Number) * time.Millisecond).Abs()
			return graded(off >= clockWrong, off > clockNote)
		}}
}

// reachableRule names who does not answer.
func reachableRule(what, change string) rule {
	return rule{want: always("it answers"), why: "without " + what, change: change, matters: true, judge: wants("yes")}
}

var serviceRules = map[port.ReadingName]rule{
	port.ReadReachable: reachableRule("this the service's own part is not examined", "read the log of the service"),
	port.ReadSigningKey: {want: always("at least 32 bytes, no sample, not one character repeated"), matters: true,
		why:    "whoever guesses the key signs a token of any buyer and any operator",
		change: "head -c 48 /dev/urandom | base64 > /etc/seckill/key, set auth.key_file to it and restart every instance", judge: wants("fine")},
	port.ReadTransport: {want: always("loopback or a private network"),
		why:    "doors, Redis, broker and database are spoken to without TLS: who can listen on the way reads tokens and passwords",
		change: "keep these connections on a private network, and put a proxy that ends TLS in front of the buyers' door", judge: prefers("loopback")},
	port.ReadOpenFiles: {want: func(f facts) string { return fmt.Sprintf("%d or more, for http.in_flight_max", f.cfg.InFlightMax) }, unit: "files",
		why:    "every waiting buyer holds a connection; at the limit new ones are not accepted",
		change: "raise the limit (systemd: LimitNOFILE=65536) or lower http.in_flight_max",
		judge:  func(r port.Reading, f facts) string { return graded(false, r.Number < int64(f.cfg.InFlightMax)) }},
	port.ReadFolderMode: {want: always("nobody else may enter or write it"), matters: true,
		why:    "the folder holds every order, and the signing key of this service",
		change: "chmod 700 the data folder and chmod 600 what is in it", judge: wants("private")},
	port.ReadFolderSpace: {want: always("1024 MiB free; wrong below 64"), matters: true, unit: "bytes",
		why:    "with a full disk nothing is accepted any more",
		change: "make room, or move the data folder (--data) to a larger disk", judge: atLeast(64<<20, 1<<30)},
}

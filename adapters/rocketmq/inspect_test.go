package rocketmq

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/test/contract"
)

func TestInspectorContractOfServersThatAreAway(t *testing.T) {
	t.Parallel()
	away := func(testing.TB) port.Inspector {
		cfg := DefaultConfig()
		cfg.NameServers, cfg.Topic, cfg.AccessKey, cfg.SecretKey = []string{"127.0.0.1:1"}, "t", "k", "hidden-word"
		return NewInspector(cfg, contract.ShiftedClock{})
	}
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartBroker, Here: away, Away: away,
		Unknown: []port.ReadingName{port.ReadReachable}, Secrets: []string{"hidden-word"}})
}

// The broker writes maps with bare numbers for names, which no JSON has.
func TestNamesThatAreNumbersAreQuoted(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{0:"a",-1:"b"}`:            `{"0":"a","-1":"b"}`,
		`{"x":{1:[1,2,3]},"y":"z"}`: `{"x":{"1":[1,2,3]},"y":"z"}`,
		`{"text":"{0:\"a\",1:2"}`:   `{"text":"{0:\"a\",1:2"}`,
		`{"0":"a"}`:                 `{"0":"a"}`,
		`[1,2]`:                     `[1,2]`,
		``:                          ``,
	} {
		if got := string(quoteNames([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func FuzzQuotedNamesKeepValidJSON(f *testing.F) {
	f.Add([]byte(`{"a":{"0":[1,2,{"b":"\\\"{1:"}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if quoted := quoteNames(body); json.Valid(body) && !bytes.Equal(quoted, body) {
			t.Errorf("%q became %q", body, quoted)
		}
	})
}

func TestABrokersClockIsItsBootAndWhatItRanSince(t *testing.T) {
	t.Parallel()
	got, err := brokerTime(map[string]string{"bootTimestamp": "1000", "runtime": "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"})
	if want := time.UnixMilli(1000).Add(26*time.Hour + 3*time.Minute + 4*time.Second + time.Second/2); err != nil || !got.Equal(want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, table := range []map[string]string{nil, {"bootTimestamp": "1000"}, {"runtime": "[ 1 days, 2 hours, 3 minutes, 4 seconds ]"}} {
		if _, err := brokerTime(table); err == nil {
			t.Errorf("%v is no time", table)
		}
	}
}

func TestQuestionsAreSignedInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	cfg := Config{AccessKey: "key", SecretKey: "hidden-word"}
	a, b := signed(cfg, map[string]string{"topic": "t", "a": "1"}), signed(cfg, map[string]string{"a": "1", "topic": "t"})
	if a["Signature"] == "" || a["Signature"] != b["Signature"] || a["AccessKey"] != "key" {
		t.Errorf("%v, %v", a, b)
	}
	if plain := signed(Config{}, nil); len(plain) != 0 {
		t.Errorf("nobody asked for %v", plain)
	}
	// HMAC-SHA1 of "key" + "t" under "secret", by another implementation.
	if got := signed(Config{AccessKey: "key", SecretKey: "secret"}, map[string]string{"topic": "t"})["Signature"]; got != "g1sgF979N9to5XznFBPHQe047nc=" {
		t.Errorf("signature %s", got)
	}
}

// groupsSeen is what an inspection says of two brokers' connections.
func groupsSeen(answers ...brokerAnswer) map[port.ReadingName]port.Reading {
	g, all := groupState{}, &readings{}
	for _, a := range answers {
		g.add(a)
	}
	g.report(Config{Topic: "topic", Tag: "tag", ConsumerGroup: "c", ProducerGroup: "p"}, all)
	found := map[port.ReadingName]port.Reading{}
	for _, r := range all.found {
		found[r.Name] = r
	}
	return found
}

func members(topics map[string]string, model string, ids ...string) *consumerGroup {
	g := &consumerGroup{Model: model, Subscriptions: map[string]subscription{}}
	for topic, tags := range topics {
		g.Subscriptions[topic] = subscription{topic, tags}
	}
	for n, id := range ids {
		g.Connections = append(g.Connections, connection{id, string(rune('a' + n))})
	}
	return g
}

func TestGroupsAreJudgedOverAllBrokers(t *testing.T) {
	t.Parallel()
	ours := map[string]string{"topic": "tag", "%RETRY%c": "*"}
	good := brokerAnswer{consumers: members(ours, "CLUSTERING", "one", "two"), producers: []connection{{"three", "x"}}}
	found := groupsSeen(good, good) // each client is connected to each broker
	if n := found[port.ReadConsumers].Number; n != 2 {
		t.Errorf("%d consumers", n)
	}
	for name, want := range map[port.ReadingName]string{port.ReadConsumerIDs: "unique", port.ReadProducerIDs: "unique",
		port.ReadSubscription: "as set", port.ReadConsumeModel: "CLUSTERING"} {
		if got := found[name]; !got.Known || got.Text != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, c := range map[string]struct {
		answer brokerAnswer
		of     port.ReadingName
		text   string
	}{
		"one id twice":    {brokerAnswer{consumers: members(ours, "CLUSTERING", "one", "one")}, port.ReadConsumerIDs, "one at a and b"},
		"producers alike": {brokerAnswer{consumers: members(ours, "CLUSTERING", "one"), producers: []connection{{"x", "1"}, {"x", "2"}}}, port.ReadProducerIDs, "x at 1 and 2"},
		"shared by both":  {brokerAnswer{consumers: members(ours, "CLUSTERING", "one"), producers: []connection{{"one", "1"}}}, port.ReadProducerIDs, "one of a producer and a consumer"},
		"another topic":   {brokerAnswer{consumers: members(map[string]string{"else": "*"}, "CLUSTERING", "one")}, port.ReadSubscription, `else with "*"`},
		"another tag":     {brokerAnswer{consumers: members(map[string]string{"topic": "*"}, "CLUSTERING", "one")}, port.ReadSubscription, `topic with "*"`},
		"nothing of ours": {brokerAnswer{consumers: members(nil, "CLUSTERING", "one")}, port.ReadSubscription, "not to topic"},
		"broadcasting":    {brokerAnswer{consumers: members(ours, "BROADCASTING", "one")}, port.ReadConsumeModel, "BROADCASTING"},
		"nobody":          {brokerAnswer{consumers: &consumerGroup{}}, port.ReadSubscription, "nobody subscribes"},
	} {
		if got := groupsSeen(c.answer)[c.of]; !got.Known || got.Text != c.text {
			t.Errorf("%s: %+v", name, got)
		}
	}
	away := errors.New("away")
	for name, r := range groupsSeen(good, brokerAnswer{consumersErr: away, producersErr: away}) {
		if r.Known {
			t.Errorf("%s is known though a broker did not answer: %+v", name, r)
		}
	}
}

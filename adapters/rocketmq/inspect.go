package rocketmq

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/application/port"
)

// Bounds of an inspection.
const (
	brokersMax  = 32
	permRead    = 4
	permWrite   = 2
	masterID    = "0"
	anySubTopic = "%RETRY%"
)

// Inspector reads what name servers and brokers say of themselves, of the topic and of the groups. It speaks
// the protocol by itself, on connections of its own: the library has none of these questions, and what hangs
// here must not hang a send.
type Inspector struct {
	cfg   Config
	clock port.Clock
}

var _ port.Inspector = (*Inspector)(nil)

// NewInspector makes an inspector; nothing is connected.
func NewInspector(cfg Config, clock port.Clock) *Inspector { return &Inspector{cfg: cfg, clock: clock} }

// broker is one as the name servers announce it.
type broker struct {
	Name  string            `json:"brokerName"`
	Addrs map[string]string `json:"brokerAddrs"` // by id; 0 is the master
}

type queueData struct {
	Broker string `json:"brokerName"`
	Read   int64  `json:"readQueueNums"`
	Write  int64  `json:"writeQueueNums"`
	Perm   int    `json:"perm"`
}

// route is where the topic's queues are.
type route struct {
	Brokers []broker    `json:"brokerDatas"`
	Queues  []queueData `json:"queueDatas"`
}

// Inspect implements port.Inspector.
func (i *Inspector) Inspect(ctx context.Context) []port.Reading {
	all := &readings{}
	names, err := i.nameServers(ctx, all)
	if err != nil {
		return all.found
	}
	brokers := i.topic(ctx, names, all)
	if len(brokers) > brokersMax {
		all.unknown("", port.ReadReachable, fmt.Sprintf("only %d of %d brokers were asked", brokersMax, len(brokers)))
		brokers = brokers[:brokersMax]
	}
	answers := make([]chan brokerAnswer, len(brokers))
	for n, b := range brokers {
		answers[n] = make(chan brokerAnswer, 1)
		go func() { answers[n] <- i.broker(ctx, b) }()
	}
	groups := groupState{}
	for _, answer := range answers {
		a := <-answer // each of its questions has a time
		all.found = append(all.found, a.found...)
		groups.add(a)
	}
	if len(brokers) > 0 {
		groups.report(i.cfg, all)
	}
	return all.found
}

// nameServers says which of them answer, and gives one that does.
func (i *Inspector) nameServers(ctx context.Context, all *readings) (string, error) {
	servers := newResolver(i.cfg.NameServers, i.cfg.DirectoryTimeout).Resolve()
	if len(servers) == 0 {
		all.unknown(strings.Join(i.cfg.NameServers, ","), port.ReadReachable, "the name cannot be resolved")
		return "", errors.New("no name server")
	}
	faults := make([]chan error, len(servers))
	for n, server := range servers {
		faults[n] = make(chan error, 1)
		go func() {
			_, err := askServer(ctx, i.cfg, server, askCluster, nil)
			faults[n] <- err
		}()
	}
	first := ""
	for n, server := range servers {
		if err := <-faults[n]; err != nil {
			all.unknown("name server "+server, port.ReadReachable, err.Error())
			continue
		}
		all.text("name server "+server, port.ReadReachable, "yes")
		if first == "" {
			first = server
		}
	}
	if first == "" {
		return "", errors.New("no name server answers")
	}
	return first, nil
}

// topic reads the topic's queues and gives the brokers that carry it; all of them while there is no topic.
func (i *Inspector) topic(ctx context.Context, names string, all *readings) []broker {
	body, err := askServer(ctx, i.cfg, names, askRoute, map[string]string{"topic": i.cfg.Topic, "acceptStandardJsonOnly": "true"})
	var no *remotingError
	if errors.As(err, &no) && no.code == answerNoTopic {
		all.add("topic "+i.cfg.Topic, port.Reading{Name: port.ReadTopicQueues, Known: true, Number: 0})
		return i.cluster(ctx, names, all)
	}
	var r route
	if err == nil {
		err = decodeLoose(body, &r)
	}
	if err != nil {
		all.unknown("topic "+i.cfg.Topic, port.ReadTopicQueues, err.Error())
		return i.cluster(ctx, names, all)
	}
	i.queues(r, all)
	return r.Brokers
}

func (i *Inspector) queues(r route, all *readings) {
	node := "topic " + i.cfg.Topic
	var queues, unread int64
	perm := permRead | permWrite
	for _, q := range r.Queues {
		queues += q.Write
		unread += max(0, q.Write-q.Read)
		perm &= q.Perm
	}
	all.add(node, port.Reading{Name: port.ReadTopicQueues, Known: true, Number: queues})
	all.add(node, port.Reading{Name: port.ReadTopicReadQueues, Known: true, Number: unread})
	words := map[int]string{0: "none", permRead: "r", permWrite: "w", permRead | permWrite: "rw"}
	all.text(node, port.ReadTopicPerm, words[perm])
}

// cluster gives every broker that the name server knows.
func (i *Inspector) cluster(ctx context.Context, names string, all *readings) []broker {
	body, err := askServer(ctx, i.cfg, names, askCluster, nil)
	var c struct {
		Brokers map[string]broker `json:"brokerAddrTable"`
	}
	if err == nil {
		err = decodeLoose(body, &c)
	}
	if err == nil && len(c.Brokers) == 0 {
		err = errors.New("the name server knows no broker")
	}
	if err != nil {
		all.unknown("name server "+names, port.ReadReachable, err.Error())
		return nil
	}
	var brokers []broker
	for _, b := range c.Brokers {
		brokers = append(brokers, b)
	}
	slices.SortFunc(brokers, func(a, b broker) int { return strings.Compare(a.Name, b.Name) })
	return brokers
}

// brokerAnswer is what one broker said, and the groups' connections to it.
type brokerAnswer struct {
	found        []port.Reading
	consumers    *consumerGroup // nil: could not be read
	consumersErr error
	producers    []connection
	producersErr error
}

func (i *Inspector) broker(ctx context.Context, b broker) brokerAnswer {
	all := &readings{}
	addr, hasMaster := b.Addrs[masterID]
	node := b.Name
	if !hasMaster {
		all.unknown(node, port.ReadReachable, "it has no master")
		err := errors.New("it has no master")
		return brokerAnswer{found: all.found, consumersErr: err, producersErr: err}
	}
	node += " " + addr
	body, err := askServer(ctx, i.cfg, addr, askBrokerConfig, nil)
	if err != nil {
		all.unknown(node, port.ReadReachable, err.Error())
		return brokerAnswer{found: all.found, consumersErr: err, producersErr: err}
	}
	all.text(node, port.ReadReachable, "yes")
	config := properties(body)
	i.settings(node, config, len(b.Addrs) > 1, all)
	i.state(ctx, node, addr, all)
	a := brokerAnswer{}
	a.consumers, a.consumersErr = i.consumers(ctx, addr)
	a.producers, a.producersErr = i.producers(ctx, addr)
	a.found = all.found
	return a
}

// settings are the broker's own, as it runs with them.
func (i *Inspector) settings(node string, config map[string]string, replicas bool, all *readings) {
	for _, name := range []port.ReadingName{port.ReadFlushDisk, port.ReadAutoTopic, port.ReadRejectsHalves} {
		if value, said := config[string(name)]; said {
			all.text(node, name, value)
		} else {
			all.unknown(node, name, "the broker does not say")
		}
	}
	for _, name := range []port.ReadingName{port.ReadFlushTimeout, port.ReadCheckTimeout, port.ReadCheckInterval, port.ReadFileReserved, port.ReadMessageMax} {
		all.count(node, name, config[string(name)])
	}
	checks, err := strconv.ParseInt(config["transactionCheckMax"], 10, 64)
	interval, err2 := strconv.ParseInt(config["transactionCheckInterval"], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		all.unknown(node, port.ReadCheckBudget, "the broker does not say transactionCheckMax and transactionCheckInterval")
	} else {
		all.add(node, port.Reading{Name: port.ReadCheckBudget, Known: true, Number: checks * interval})
	}
	role, said := config["brokerRole"]
	switch {
	case !said:
		all.unknown(node, port.ReadBrokerRole, "the broker does not say")
	case replicas:
		all.text(node, port.ReadBrokerRole, role)
	default:
		all.text(node, port.ReadBrokerRole, role+" without replicas")
	}
}

// state is what the broker counts: its disk, and its clock.
func (i *Inspector) state(ctx context.Context, node, addr string, all *readings) {
	before := i.clock.Now()
	body, err := askServer(ctx, i.cfg, addr, askBrokerState, nil)
	after := i.clock.Now()
	var state struct {
		Table map[string]string `json:"table"`
	}
	if err == nil {
		err = decodeLoose(body, &state)
	}
	if err != nil {
		all.unknown(node, port.ReadDiskUsed, err.Error())
		all.unknown(node, port.ReadClock, err.Error())
		return
	}
	if ratio, err := strconv.ParseFloat(state.Table["commitLogDiskRatio"], 64); err == nil && ratio >= 0 {
		all.add(node, port.Reading{Name: port.ReadDiskUsed, Known: true, Number: int64(100 * ratio)})
	} else {
		all.unknown(node, port.ReadDiskUsed, "the broker does not say commitLogDiskRatio")
	}
	theirs, err := brokerTime(state.Table)
	if err != nil {
		all.unknown(node, port.ReadClock, err.Error())
		return
	}
	middle := before.Add(after.Sub(before) / 2)
	all.add(node, port.Reading{Name: port.ReadClock, Known: true, Number: theirs.Sub(middle).Milliseconds()})
}

var runtimeForm = regexp.MustCompile(`(\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds`)

// brokerTime is the broker's time, to the second: when it booted, and for how long it has run by the same clock.
func brokerTime(table map[string]string) (time.Time, error) {
	boot, err := strconv.ParseInt(table["bootTimestamp"], 10, 64)
	parts := runtimeForm.FindStringSubmatch(table["runtime"])
	if err != nil || parts == nil {
		return time.Time{}, errors.New("the broker does not say bootTimestamp and runtime")
	}
	var ran time.Duration
	for n, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		count, err := strconv.ParseInt(parts[n+1], 10, 32)
		if err != nil {
			return time.Time{}, fmt.Errorf("runtime of the broker: %w", err)
		}
		ran += time.Duration(count) * unit
	}
	return time.UnixMilli(boot).Add(ran + time.Second/2), nil
}

// properties reads name=value lines.
func properties(body []byte) map[string]string {
	found := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return found
}

// connection is one client as a broker sees it.
type connection struct {
	ClientID   string `json:"clientId"`
	ClientAddr string `json:"clientAddr"`
}

type subscription struct {
	Topic string `json:"topic"`
	Tags  string `json:"subString"`
}

type consumerGroup struct {
	Connections   []connection            `json:"connectionSet"`
	Subscriptions map[string]subscription `json:"subscriptionTable"`
	Model         string                  `json:"messageModel"`
}

func (i *Inspector) consumers(ctx context.Context, addr string) (*consumerGroup, error) {
	body, err := askServer(ctx, i.cfg, addr, askConsumers, map[string]string{"consumerGroup": i.cfg.ConsumerGroup})
	var no *remotingError
	if errors.As(err, &no) && no.code == answerNotOnline {
		return &consumerGroup{}, nil
	}
	var g consumerGroup
	if err == nil {
		err = decodeLoose(body, &g)
	}
	return &g, err
}

func (i *Inspector) producers(ctx context.Context, addr string) ([]connection, error) {
	body, err := askServer(ctx, i.cfg, addr, askProducers, map[string]string{"producerGroup": i.cfg.ProducerGroup})
	var no *remotingError
	if errors.As(err, &no) && no.code == answerSystemError && strings.Contains(no.remark, "not exist") {
		return nil, nil
	}
	var g struct {
		Connections []connection `json:"connectionSet"`
	}
	if err == nil {
		err = json.Unmarshal(body, &g)
	}
	return g.Connections, err
}

// groupState is both groups over all brokers.
type groupState struct {
	consumerIDs, producerIDs     map[string]bool
	twiceConsumer, twiceProducer string // an id that two clients of one broker have
	consumersErr                 error
	producersErr                 error
	seen                         []consumerGroup
}

func (g *groupState) add(a brokerAnswer) {
	if g.consumerIDs == nil {
		g.consumerIDs, g.producerIDs = map[string]bool{}, map[string]bool{}
	}
	g.consumersErr = errors.Join(g.consumersErr, a.consumersErr)
	g.producersErr = errors.Join(g.producersErr, a.producersErr)
	if a.consumersErr == nil {
		g.seen = append(g.seen, *a.consumers)
		if twice := twiceIn(a.consumers.Connections, g.consumerIDs); twice != "" {
			g.twiceConsumer = twice
		}
	}
	if a.producersErr == nil {
		if twice := twiceIn(a.producers, g.producerIDs); twice != "" {
			g.twiceProducer = twice
		}
	}
}

// twiceIn gives an id that two connections to one broker have, with both addresses.
func twiceIn(connections []connection, ids map[string]bool) string {
	at := map[string]string{}
	twice := ""
	for _, c := range connections {
		if other, known := at[c.ClientID]; known {
			twice = fmt.Sprintf("%s at %s and %s", c.ClientID, other, c.ClientAddr)
		}
		at[c.ClientID] = c.ClientAddr
		ids[c.ClientID] = true
	}
	return twice
}

// report judges nothing; it says what all brokers together show.
func (g *groupState) report(cfg Config, all *readings) {
	node := "group " + cfg.ConsumerGroup
	switch {
	case g.consumersErr != nil:
		detail := "not every broker told its connections: " + oneLine(g.consumersErr)
		for _, name := range []port.ReadingName{port.ReadConsumers, port.ReadConsumerIDs, port.ReadSubscription, port.ReadConsumeModel} {
			all.unknown(node, name, detail)
		}
	default:
		all.add(node, port.Reading{Name: port.ReadConsumers, Known: true, Number: int64(len(g.consumerIDs))})
		all.text(node, port.ReadConsumerIDs, orUnique(g.twiceConsumer))
		all.text(node, port.ReadSubscription, g.subscription(cfg))
		all.text(node, port.ReadConsumeModel, g.consumeModel())
	}
	node = "group " + cfg.ProducerGroup
	if g.producersErr != nil {
		all.unknown(node, port.ReadProducerIDs, "not every broker told its connections: "+oneLine(g.producersErr))
		return
	}
	twice := g.twiceProducer
	for id := range g.producerIDs {
		if g.consumerIDs[id] {
			twice = id + " of a producer and a consumer"
		}
	}
	all.text(node, port.ReadProducerIDs, orUnique(twice))
}

const nobodySubscribes = "nobody subscribes"

// subscription compares what the group has at each broker with what our own consumers ask for.
func (g *groupState) subscription(cfg Config) string {
	found := nobodySubscribes
	for _, group := range g.seen {
		if len(group.Connections) == 0 {
			continue
		}
		ours := false
		for topic, s := range group.Subscriptions {
			switch {
			case strings.HasPrefix(topic, anySubTopic):
			case topic == cfg.Topic && s.Tags == cfg.Tag:
				ours = true
			default:
				return fmt.Sprintf("%s with %q", topic, s.Tags)
			}
		}
		if !ours {
			return "not to " + cfg.Topic
		}
		found = "as set"
	}
	return found
}

func (g *groupState) consumeModel() string {
	found := nobodySubscribes
	for _, group := range g.seen {
		if len(group.Connections) == 0 {
			continue
		}
		if found = group.Model; found != "CLUSTERING" {
			return found
		}
	}
	return found
}

func orUnique(twice string) string {
	if twice == "" {
		return "unique"
	}
	return twice
}

func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// readings gathers what was read.
type readings struct{ found []port.Reading }

func (r *readings) add(node string, reading port.Reading) {
	reading.Part, reading.Node = port.PartBroker, node
	r.found = append(r.found, reading)
}

func (r *readings) text(node string, name port.ReadingName, text string) {
	r.add(node, port.Reading{Name: name, Known: true, Text: text})
}

func (r *readings) unknown(node string, name port.ReadingName, detail string) {
	r.add(node, port.Reading{Name: name, Detail: detail})
}

func (r *readings) count(node string, name port.ReadingName, value string) {
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		r.unknown(node, name, "the broker does not say a number")
		return
	}
	r.add(node, port.Reading{Name: name, Known: true, Number: number})
}

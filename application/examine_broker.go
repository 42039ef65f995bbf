package application

import (
	"fmt"
	"time"

	"seckill/application/port"
)

// What the broker must survive and hold.
const (
	outageWrong   = 30 * time.Minute // an outage that halves do not survive is wrong below, and a note below the other
	outageNote    = 8 * time.Hour
	queuesMin     = 4        // queues of the topic
	messageMin    = 64 << 10 // a batch of ours stays under 32 KiB
	reservedWrong = 24       // hours
	reservedNote  = 72
	diskNote      = 75 // percent
	diskWrong     = 90 // from here on the broker refuses messages
	flushNote     = 10 * time.Second
	checkEarly    = 6 * time.Second // checks that come earlier ask about halves that are still being confirmed
)

var brokerRules = map[port.ReadingName]rule{
	port.ReadReachable: reachableRule("the broker a purchase is not carried to the database: buyers are told that the outcome is unknown",
		"start it, check rocketmq.name_servers and the keys, and that the address which the broker announces (brokerIP1) is reachable from here"),
	port.ReadFlushDisk: {want: always("SYNC_FLUSH"), matters: true,
		why:    "with ASYNC_FLUSH a power cut loses half messages of purchases that were answered as accepted",
		change: "flushDiskType=SYNC_FLUSH in broker.conf, and restart the broker", judge: wants("SYNC_FLUSH")},
	port.ReadFlushTimeout: {want: always("10s or less"), unit: "ms",
		why:    "for so long a send waits for the disk before the broker says that it is late",
		change: "syncFlushTimeout=5000 in broker.conf", judge: atMost(flushNote.Milliseconds(), 1<<62)},
	port.ReadCheckTimeout: {want: func(f facts) string {
		return fmt.Sprintf("about 10s, and at most %v, which rocketmq.check_timeout says", f.cfg.CheckTimeout)
	}, matters: true, unit: "ms",
		why: "the service waits out the check window before it rebuilds a gate; a broker that asks later than it was told of breaks in " +
			"after the window. Under 6s halves that are still being confirmed are asked about, which costs duplicates and no more",
		change: "set rocketmq.check_timeout to the broker's transactionTimeOut, or transactionTimeOut=10000 in broker.conf",
		judge: func(r port.Reading, f facts) string {
			return graded(r.Number > f.cfg.CheckTimeout.Milliseconds(), r.Number < checkEarly.Milliseconds())
		}},
	port.ReadCheckInterval: {want: func(f facts) string {
		return fmt.Sprintf("about 10s, and at most %v, which rocketmq.check_interval says", f.cfg.CheckInterval)
	}, matters: true, unit: "ms",
		why: "the check window is made of it: a broker that asks less often than the service believes breaks in after the window. " +
			"Under 5s it uses up transactionCheckMax sooner",
		change: "set rocketmq.check_interval to the broker's transactionCheckInterval, or transactionCheckInterval=10000 in broker.conf",
		judge: func(r port.Reading, f facts) string {
			return graded(r.Number > f.cfg.CheckInterval.Milliseconds(), r.Number < 5000)
		}},
	port.ReadCheckBudget: {want: always("8h or more; wrong below 30m"), matters: true, unit: "ms",
		why: "this is the longest outage of Redis or of all instances that a pending half message survives (transactionCheckMax × " +
			"transactionCheckInterval); after it the broker gives the half up, and only the gate's open flow still knows of the purchase",
		change: "transactionCheckMax=2880 with transactionCheckInterval=10000 in broker.conf",
		judge:  atLeast(outageWrong.Milliseconds(), outageNote.Milliseconds())},
	port.ReadAutoTopic: {want: always("false"), matters: true,
		why:    "a topic that a misspelt name makes by itself takes purchases that nobody consumes",
		change: "autoCreateTopicEnable=false in broker.conf, and `seckill migrate up` for the topic", judge: wants("false")},
	port.ReadFileReserved: {want: always("72 hours or more; wrong below 24"), matters: true, unit: "hours",
		why:    "a message that is older is deleted, consumed or not",
		change: "fileReservedTime=72 in broker.conf", judge: atLeast(reservedWrong, reservedNote)},
	port.ReadMessageMax: {want: always("64 KiB or more"), matters: true, unit: "bytes",
		why:    "a batch of purchases takes up to 32 KiB; a broker that refuses it turns every answer into unknown",
		change: "maxMessageSize=4194304 in broker.conf", judge: atLeast(messageMin, messageMin)},
	port.ReadRejectsHalves: {want: always("false"), matters: true,
		why: "the broker refuses transactional messages, so no purchase can be sent", change: "rejectTransactionMessage=false in broker.conf",
		judge: wants("false")},
	port.ReadBrokerRole: {want: always("SYNC_MASTER where it has replicas"),
		why:    "an ASYNC_MASTER whose disk is lost takes the messages along that its replica has not got yet",
		change: "brokerRole=SYNC_MASTER in broker.conf of a master with replicas", judge: prefers("SYNC_MASTER", "ASYNC_MASTER without replicas")},
	port.ReadDiskUsed: {want: always("under 75 percent; wrong from 90"), matters: true, unit: "percent",
		why:    "over diskMaxUsedSpaceRatio the broker deletes old messages early, and at 90 percent it refuses new ones",
		change: "make room on the broker's disk, or move its store to a larger one", judge: atMost(diskNote-1, diskWrong-1)},
	port.ReadTopicQueues: {want: always("4 or more in all"), matters: true, unit: "queues",
		why: "queues are shared out among the instances, and one beyond their number consumes nothing; without the topic nothing is sent at all",
		change: "`seckill migrate up` with rocketmq.broker set makes the topic with 8 queues; or mqadmin updateTopic -t TOPIC -r 8 -w 8 " +
			"(more only: fewer queues strand what is in them)",
		judge: atLeast(queuesMin, queuesMin)},
	port.ReadTopicReadQueues: {want: always("none that is written and not read"), matters: true, unit: "queues",
		why:    "what is sent to a queue that nobody reads waits there for ever",
		change: "mqadmin updateTopic with as many read as write queues (-r and -w alike)", judge: atMost(0, 0)},
	port.ReadTopicPerm: {want: always("rw"), matters: true,
		why: "purchases are sent to the topic and read from it", change: "mqadmin updateTopicPerm -t TOPIC -p 6", judge: wants("rw")},
	port.ReadConsumers: {want: func(f facts) string {
		if !f.queuesRead || f.queues == 0 {
			return "one or more, at most as many as the topic has queues"
		}
		return fmt.Sprintf("1 to %d, the topic's queues", f.queues)
	}, unit: "instances",
		why:    "without one no order reaches the database; one beyond the topic's queues consumes nothing",
		change: "start an instance; for more of them than queues, raise the queues first",
		judge: func(r port.Reading, f facts) string {
			return graded(false, r.Number < 1 || f.queuesRead && r.Number > f.queues)
		}},
	port.ReadConsumerIDs: {want: always("unique"), matters: true, why: whySameID, change: changeSameID, judge: wants("unique")},
	port.ReadProducerIDs: {want: always("unique"), matters: true, why: whySameID, change: changeSameID, judge: wants("unique")},
	port.ReadSubscription: {want: always("the topic with the one tag, and nothing else"), matters: true,
		why:    "members of a group with other subscriptions overwrite each other's at every heartbeat, and messages are skipped without a trace",
		change: "give every other program a consumer group of its own, and every instance the same rocketmq.topic and rocketmq.tag",
		judge:  wants("as set", "nobody subscribes")},
	port.ReadConsumeModel: {want: always("CLUSTERING"), matters: true,
		why:    "a broadcasting member gets every message, and the queues of others are not taken over when they die",
		change: "give the other program a consumer group of its own", judge: wants("CLUSTERING", "nobody subscribes")},
	port.ReadClock: clockRule("the broker counts a half message's age from the sender's clock to its own: one that is ahead asks at once, " +
		"one that is behind asks late, after the check window"),
}

const (
	whySameID = "two clients of one id share a connection and queues: check-backs go to the wrong one and are lost, and messages run twice"

	changeSameID = "find the two by their addresses; every instance of this service has an id of its own, so one of them is another program " +
		"or a copy of a running machine"
)

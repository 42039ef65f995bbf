//go:build stack

package rocketmq_test

import (
	"testing"

	"seckill/adapters/rocketmq"
	"seckill/application/port"
	"seckill/test/contract"
)

func TestInspectorContract(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartBroker, Here: func(tb testing.TB) port.Inspector {
		return rocketmq.NewInspector(withTopic(tb), contract.ShiftedClock{})
	}, Known: []port.ReadingName{port.ReadReachable, port.ReadFlushDisk, port.ReadFlushTimeout, port.ReadCheckTimeout, port.ReadCheckInterval,
		port.ReadCheckBudget, port.ReadAutoTopic, port.ReadFileReserved, port.ReadMessageMax, port.ReadRejectsHalves, port.ReadBrokerRole,
		port.ReadDiskUsed, port.ReadTopicQueues, port.ReadTopicReadQueues, port.ReadTopicPerm, port.ReadConsumers, port.ReadConsumerIDs,
		port.ReadProducerIDs, port.ReadSubscription, port.ReadConsumeModel, port.ReadClock}})
}

func found(t *testing.T, all []port.Reading, name port.ReadingName) port.Reading {
	t.Helper()
	for _, r := range all {
		if r.Name == name && r.Known {
			return r
		}
	}
	t.Fatalf("no %s in %+v", name, all)
	return port.Reading{}
}

func TestInspectionSaysThatThereIsNoTopic(t *testing.T) {
	t.Parallel()
	all := rocketmq.NewInspector(settings(t), contract.ShiftedClock{}).Inspect(t.Context())
	if r := found(t, all, port.ReadTopicQueues); r.Number != 0 {
		t.Errorf("%+v", r)
	}
	if r := found(t, all, port.ReadFlushDisk); r.Text != "SYNC_FLUSH" {
		t.Errorf("the brokers are read without a topic: %+v", r)
	}
}

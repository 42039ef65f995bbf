package system_test

import (
	"testing"

	"seckill/adapters/system"
	"seckill/application/port"
	"seckill/test/contract"
)

func TestInspectorContract(t *testing.T) {
	t.Parallel()
	const key = "hidden-word hidden-word hidden-word"
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartService,
		Here:  func(testing.TB) port.Inspector { return system.NewInspector(system.Settings{SigningKey: []byte(key)}) },
		Known: []port.ReadingName{port.ReadSigningKey, port.ReadTransport, port.ReadOpenFiles}, Secrets: []string{"hidden-word"}})
}

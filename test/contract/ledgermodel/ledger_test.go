package ledgermodel_test

import (
	"testing"

	"seckill/test/contract"
	"seckill/test/contract/ledgermodel"
)

func TestContract(t *testing.T) {
	t.Parallel()
	contract.RunLedger(t, contract.LedgerSuite{Open: func(*testing.T) contract.LedgerStore { return ledgermodel.New(0) }})
}

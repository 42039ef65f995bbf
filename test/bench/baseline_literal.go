package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/echohttp"
	"seckill/application"
	"seckill/domain"
)

// The literal design's settings, told to its process by the environment.
const (
	literalOwn     = "SECKILLBENCH_LITERAL_OWN" // topic, and prefix of its keys
	literalDSN     = "SECKILLBENCH_LITERAL_DSN"
	literalWorkers = 8
)

// literal is the source design done literally and without mistakes.
type literal struct {
	own          string
	redis        *redis.Client
	transactions *transactions
}

// literalMessage is one purchase as it goes to the consumer.
type literalMessage struct {
	Product  string `json:"productId"`
	User     string `json:"uid"`
	Token    string `json:"token"`
	Quantity int64  `json:"quantity"`
}

// literalFlow is what the script writes down.
type literalFlow struct {
	Action  string `json:"action"`
	Product string `json:"productId"`
	Token   string `json:"token"`
	Change  int64  `json:"change"`
	At      int64  `json:"at"`
}

// literalScript deducts once for a token. It gives 1 taken, 2 known token, 3 no product, 4 not enough.
//
// KEYS stock, flows of the user · ARGV token, quantity, flow
var literalScript = redis.NewScript(`
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 2 end
local stock = redis.call('GET', KEYS[1])
if not stock then return 3 end
if tonumber(stock) < tonumber(ARGV[2]) then return 4 end
local left = redis.call('DECRBY', KEYS[1], ARGV[2])
local flow = cjson.decode(ARGV[3])
flow.from, flow.to = stock, left
redis.call('HSET', KEYS[2], ARGV[1], cjson.encode(flow))
return 1`)

func (l *literal) stockKey(product string) string { return l.own + ":{" + product + "}:stock" }

func (l *literal) flowKey(product, user string) string {
	return l.own + ":{" + product + "}:flow:" + user
}

// Deduct is one script call and, if it took the units, one half message.
func (l *literal) Deduct(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
	key := c.Key()
	flow, err := json.Marshal(literalFlow{"deduct", key.Product(), key.Token(), c.Quantity(), time.Now().UnixMilli()})
	if err != nil {
		return application.Receipt{}, err
	}
	said, err := literalScript.Run(ctx, l.redis, []string{l.stockKey(key.Product()), l.flowKey(key.Product(), key.User())},
		key.Token(), strconv.FormatInt(c.Quantity(), 10), string(flow)).Int()
	switch {
	case err != nil:
		return application.Receipt{}, domain.NewError(domain.CodeOutcomeUnknown, "the script was not answered", err)
	case said == 3:
		return application.Receipt{}, domain.NewError(domain.CodeProductNotFound, "no such product", nil)
	case said == 4:
		return application.Receipt{}, domain.NewError(domain.CodeStockNotEnough, "not enough", nil)
	}
	receipt := application.Receipt{Replayed: said == 2, Order: application.OrderView{Key: key, Quantity: c.Quantity(),
		Status: application.OrderPending, CreatedAt: time.Now()}}
	if receipt.Replayed {
		return receipt, nil
	}
	body, err := json.Marshal(literalMessage{key.Product(), key.User(), key.Token(), c.Quantity()})
	if err != nil {
		return application.Receipt{}, err
	}
	if committed, err := l.transactions.send(body); err != nil || !committed {
		return application.Receipt{}, domain.NewError(domain.CodeOutcomeUnknown, "the half was not committed", err)
	}
	return receipt, nil
}

// look is the local transaction and the check-back: is the flow there?
func (l *literal) look(body []byte) (bool, error) {
	var m literalMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return l.redis.HExists(ctx, l.flowKey(m.Product, m.User), m.Token).Result()
}

// serveLiteral is the literal service: the same buyers' door, the literal work behind it, 8 workers in the same process.
func serveLiteral(ctx context.Context) (err error) {
	servers, err := serversHere()
	if err != nil {
		return err
	}
	l := &literal{own: os.Getenv(literalOwn), redis: redis.NewClient(&redis.Options{Addr: servers.redis, PoolSize: 64, MaxRetries: -1, DisableIdentity: true})}
	defer l.redis.Close()
	ledger, err := openLiteralLedger(os.Getenv(literalDSN), literalWorkers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.db.Close()) }()
	if l.transactions, err = servers.newTransactions(l.own, l.look); err != nil {
		return err
	}
	defer l.transactions.close()
	stop, err := servers.consume(l.own, literalWorkers, ledger.apply)
	if err != nil {
		return err
	}
	defer stop()
	return serveDoor(ctx, func(cfg echohttp.Config) http.Handler {
		return echohttp.NewBuyersDoor(cfg, echohttp.BuyersDeps{Deduct: l}, slog.New(slog.DiscardHandler)).Handler()
	})
}

// pauseBefore a conflict is tried again: short, and not the same for all.
func pauseBefore(try int) {
	time.Sleep(time.Duration(rand.IntN(1000*min(try, 20))) * time.Microsecond)
}

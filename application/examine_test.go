package application_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// judged is a reading with the verdict that it must get.
type judged struct {
	verdict string
	text    string
	number  int64
}

const (
	right = application.VerdictRight
	note  = application.VerdictNote
	wrong = application.VerdictWrong
)

func texts(verdict string, all ...string) (js []judged) {
	for _, text := range all {
		js = append(js, judged{verdict: verdict, text: text})
	}
	return js
}

func numbers(verdict string, all ...int64) (js []judged) {
	for _, n := range all {
		js = append(js, judged{verdict: verdict, number: n})
	}
	return js
}

func join(all ...[]judged) (js []judged) {
	for _, some := range all {
		js = append(js, some...)
	}
	return js
}

var clockCases = join(numbers(right, 0, 2000, -2000), numbers(note, 2001, -29_999), numbers(wrong, 30_000, -3_600_000, 3_600_000))

// Every rule, with what is right, what is a note, and what is wrong. The service is told 10s and 10s, has a pool
// of 16 and 20,000 requests; 1,000 units are left to sell.
var ruleCases = map[string]map[port.ReadingName][]judged{
	port.PartService: {
		port.ReadReachable:   texts(right, "yes"),
		port.ReadSigningKey:  join(texts(right, "fine"), texts(wrong, "too short", "looks like a sample from a document")),
		port.ReadTransport:   join(texts(right, "loopback"), texts(note, "without TLS: :8080")),
		port.ReadOpenFiles:   join(numbers(right, 20_000, 65_536), numbers(note, 0, 1024)),
		port.ReadFolderMode:  join(texts(right, "private"), texts(wrong, "the folder has mode 0755")),
		port.ReadFolderSpace: join(numbers(right, 1<<30), numbers(note, 64<<20), numbers(wrong, 0, 1<<20)),
	},
	port.PartGate: {
		port.ReadReachable:      texts(right, "yes"),
		port.ReadRedisVersion:   join(numbers(right, 7, 8, 9), numbers(wrong, 6, 0)),
		port.ReadRole:           join(texts(right, "master"), texts(wrong, "slave")),
		port.ReadClusterMode:    join(texts(right, "as set"), texts(wrong, "one address of a cluster")),
		port.ReadClusterState:   join(texts(right, "ok"), texts(wrong, "fail")),
		port.ReadEviction:       join(texts(right, "noeviction"), texts(wrong, "allkeys-lru", "volatile-lru", "allkeys-random", "volatile-ttl")),
		port.ReadMaxMemory:      join(numbers(right, 1<<30), numbers(note, 0)),
		port.ReadRoom:           join(numbers(right, 1<<20), numbers(note, 600_000), numbers(wrong, 0, 511_999)),
		port.ReadAppendOnly:     join(texts(right, "yes"), texts(wrong, "no")),
		port.ReadAppendFsync:    join(texts(right, "everysec", "always"), texts(note, "no")),
		port.ReadLastWrite:      join(texts(right, "ok"), texts(wrong, "err")),
		port.ReadReplicas:       join(numbers(right, 1, 2), numbers(note, 0)),
		port.ReadReplicaLag:     join(numbers(right, 0, 16<<20), numbers(note, 1<<30)),
		port.ReadMinReplicas:    join(numbers(right, 1), numbers(note, 0)),
		port.ReadReplicaEvicts:  join(texts(right, "noeviction"), texts(wrong, "allkeys-lru")),
		port.ReadReplicaPersist: join(texts(right, "yes"), texts(note, "no")),
		port.ReadIdentity:       join(texts(right, "yes"), texts(wrong, "no: a script is not told master_replid")),
		port.ReadClock:          clockCases,
	},
	port.PartBroker: {
		port.ReadReachable:       texts(right, "yes"),
		port.ReadFlushDisk:       join(texts(right, "SYNC_FLUSH"), texts(wrong, "ASYNC_FLUSH")),
		port.ReadFlushTimeout:    join(numbers(right, 5000), numbers(note, 60_000)),
		port.ReadCheckTimeout:    join(numbers(right, 6000, 10_000), numbers(note, 2000), numbers(wrong, 10_001, 60_000)),
		port.ReadCheckInterval:   join(numbers(right, 5000, 10_000), numbers(note, 1000), numbers(wrong, 30_000)),
		port.ReadCheckBudget:     join(numbers(right, 28_800_000), numbers(note, 1_800_000), numbers(wrong, 0, 450_000)),
		port.ReadAutoTopic:       join(texts(right, "false"), texts(wrong, "true")),
		port.ReadFileReserved:    join(numbers(right, 72), numbers(note, 24), numbers(wrong, 12, 0)),
		port.ReadMessageMax:      join(numbers(right, 4<<20, 64<<10), numbers(wrong, 32<<10)),
		port.ReadRejectsHalves:   join(texts(right, "false"), texts(wrong, "true")),
		port.ReadBrokerRole:      join(texts(right, "SYNC_MASTER", "ASYNC_MASTER without replicas"), texts(note, "ASYNC_MASTER")),
		port.ReadDiskUsed:        join(numbers(right, 0, 74), numbers(note, 75, 89), numbers(wrong, 90, 100)),
		port.ReadTopicQueues:     join(numbers(right, 4, 8), numbers(wrong, 0, 1, 3)),
		port.ReadTopicReadQueues: join(numbers(right, 0), numbers(wrong, 1)),
		port.ReadTopicPerm:       join(texts(right, "rw"), texts(wrong, "r", "w", "none")),
		port.ReadConsumers:       join(numbers(right, 1, 8), numbers(note, 0)),
		port.ReadConsumerIDs:     join(texts(right, "unique"), texts(wrong, "id at a and b")),
		port.ReadProducerIDs:     join(texts(right, "unique"), texts(wrong, "id at a and b")),
		port.ReadSubscription:    join(texts(right, "as set", "nobody subscribes"), texts(wrong, `other with "*"`)),
		port.ReadConsumeModel:    join(texts(right, "CLUSTERING", "nobody subscribes"), texts(wrong, "BROADCASTING")),
		port.ReadClock:           clockCases,
	},
	port.PartLedger: {
		port.ReadReachable: texts(right, "yes"),
		port.ReadDatabaseVersion: join(texts(right, "10.11.19-MariaDB-0+deb12u1", "11.4.2-MariaDB", "8.0.36", "9.1.0", "5.5.5-10.11.2-MariaDB", "3.54.1 SQLite"),
			texts(note, "10.6.1-MariaDB", "5.7.44-log", "whatever")),
		port.ReadLogFlush:    join(numbers(right, 1), numbers(wrong, 0, 2)),
		port.ReadBinlogSync:  join(numbers(right, 1), numbers(note, 0, 100)),
		port.ReadDoublewrite: join(texts(right, "ON", "DETECT_AND_RECOVER"), texts(wrong, "OFF")),
		port.ReadIsolation:   join(texts(right, "READ-COMMITTED"), texts(wrong, "REPEATABLE-READ", "READ-UNCOMMITTED")),
		port.ReadSQLMode:     join(texts(right, "STRICT_ALL_TABLES,NO_ZERO_DATE"), texts(wrong, "", "NO_ENGINE_SUBSTITUTION")),
		port.ReadSnapshot:    texts(right, "ON", "OFF"),
		port.ReadReadOnly:    join(texts(right, "OFF"), texts(wrong, "ON")),
		port.ReadWriters:     join(texts(right, "OFF"), texts(note, "ON")),
		port.ReadLockWait:    join(numbers(right, 1, 5, 20), numbers(wrong, 0, 50)),
		port.ReadTimeZone:    join(texts(right, "+00:00"), texts(wrong, "SYSTEM", "+02:00")),
		port.ReadConnections: join(numbers(right, 26, 500), numbers(note, 25), numbers(wrong, 15)),
		port.ReadRights:      join(texts(right, "none"), texts(note, "ALL PRIVILEGES", "ALTER, DROP")),
		port.ReadMigrations:  join(numbers(right, 0), numbers(wrong, 1)),
		port.ReadJournalMode: join(texts(right, "wal"), texts(wrong, "delete")),
		port.ReadSynchronous: join(numbers(right, 2), numbers(wrong, 0, 1)),
		port.ReadClock:       clockCases,
	},
}

// examineWith is an examination whose one inspector reads these; the shop has 1,000 units left.
func examineWith(t *testing.T, readings ...port.Reading) application.Examination {
	t.Helper()
	s := newShop(nil)
	s.open(t, "p", 1000)
	inspector := portmock.NewMockInspector(gomock.NewController(t))
	inspector.EXPECT().Inspect(gomock.Any()).Return(readings)
	return examineBy(t, s.books, s.gate, inspector)
}

func examineBy(t *testing.T, catalog port.Catalog, gate port.GateAdmin, inspectors ...port.Inspector) application.Examination {
	t.Helper()
	var all []application.PartInspector
	for _, i := range inspectors {
		all = append(all, application.PartInspector{Part: port.PartGate, Inspector: i})
	}
	clock := portmock.NewMockClock(gomock.NewController(t))
	clock.EXPECT().Now().Return(time.UnixMilli(1000)).AnyTimes()
	x, err := application.NewExamine(all, catalog, gate, clock, application.DefaultExamineConfig()).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func checkOf(x application.Examination, part, name string) (found []application.ExamineCheck) {
	for _, c := range x.Checks {
		if c.Part == part && c.Name == name {
			found = append(found, c)
		}
	}
	return found
}

func TestEveryRuleTellsRightFromWrongAndUnknown(t *testing.T) {
	t.Parallel()
	for part, names := range application.Rules() {
		for _, name := range names {
			cases := ruleCases[part][name]
			if len(cases) == 0 {
				t.Errorf("no case for %s %s", part, name)
			}
			t.Run(part+" "+string(name), func(t *testing.T) {
				t.Parallel()
				readings := []port.Reading{{Part: part, Node: "n", Name: name, Detail: "refused"}}
				for _, c := range cases {
					readings = append(readings, port.Reading{Part: part, Node: "n", Name: name, Known: true, Text: c.text, Number: c.number})
				}
				checks := checkOf(examineWith(t, withQueues(readings)...), part, string(name))
				if name == port.ReadTopicQueues {
					checks = checks[1:] // the one of withQueues
				}
				if len(checks) != len(readings) {
					t.Fatalf("%d checks of %d readings", len(checks), len(readings))
				}
				if u := checks[0]; u.Verdict != application.VerdictUnknown || u.Found != "refused" {
					t.Errorf("not known: %+v", u)
				}
				for i, c := range cases {
					got := checks[i+1]
					if got.Verdict != c.verdict {
						t.Errorf("%q %d is %s, want %s", c.text, c.number, got.Verdict, c.verdict)
					}
					if got.Right == "" || got.Why == "" || got.Change == "" || got.Found == "" && c.text != "" {
						t.Errorf("it does not say what to do: %+v", got)
					}
				}
			})
		}
	}
}

// withQueues has eight queues read first: consumers are compared with them.
func withQueues(readings []port.Reading) []port.Reading {
	return append([]port.Reading{{Part: port.PartBroker, Name: port.ReadTopicQueues, Known: true, Number: 8}}, readings...)
}

func TestAnExaminationCountsAndIsHealthyOnlyWhenAllThatMattersIsRight(t *testing.T) {
	t.Parallel()
	fine := port.Reading{Part: port.PartGate, Name: port.ReadEviction, Known: true, Text: "noeviction"}
	evicts, unread := fine, fine
	evicts.Text = "allkeys-lru"
	unread.Known, unread.Detail = false, "refused"
	minor := port.Reading{Part: port.PartGate, Name: port.ReadAppendFsync, Detail: "refused"}
	for name, c := range map[string]struct {
		readings               []port.Reading
		healthy                bool
		wrongs, unknown, notes int
	}{
		"all right":            {[]port.Reading{fine}, true, 0, 0, 0},
		"wrong":                {[]port.Reading{fine, evicts}, false, 1, 0, 0},
		"unread":               {[]port.Reading{fine, unread}, false, 0, 1, 0},
		"unread, matters less": {[]port.Reading{fine, minor}, true, 0, 0, 1},
		"a reading of no rule": {[]port.Reading{fine, {Part: port.PartGate, Name: "new"}}, true, 0, 0, 0},
		"nothing at all":       {nil, false, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := examineWith(t, c.readings...)
			if x.Healthy != c.healthy || x.Wrong != c.wrongs || x.Unknown != c.unknown || x.Notes != c.notes {
				t.Errorf("%+v", x)
			}
		})
	}
}

func TestMemoryIsComparedWithWhatMayStillBeSold(t *testing.T) {
	t.Parallel()
	inspector := portmock.NewMockInspector(gomock.NewController(t))
	inspector.EXPECT().Inspect(gomock.Any()).Return([]port.Reading{{Part: port.PartGate, Name: port.ReadRoom, Known: true, Number: 1 << 40}})
	s := newShop(nil)
	s.books.fault = func(string) error { return errors.New("away") }
	x := examineBy(t, s.books, s.gate, inspector)
	if c := checkOf(x, port.PartGate, "room"); len(c) != 1 || c[0].Verdict != application.VerdictUnknown {
		t.Errorf("compared with nothing: %+v", c)
	}
	if c := checkOf(x, port.PartLedger, "products"); len(c) != 1 || c[0].Verdict != application.VerdictUnknown {
		t.Errorf("products that could not be read: %+v", c)
	}
}

func TestAnInspectorThatHangsOrPanicsCostsItsOwnPartOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, "hang", func(t *testing.T) {
		controller := gomock.NewController(t)
		hangs, panics, fine := portmock.NewMockInspector(controller), portmock.NewMockInspector(controller), portmock.NewMockInspector(controller)
		release := make(chan struct{})
		hangs.EXPECT().Inspect(gomock.Any()).DoAndReturn(func(context.Context) []port.Reading { <-release; return nil }) // asked once
		panics.EXPECT().Inspect(gomock.Any()).DoAndReturn(func(context.Context) []port.Reading { panic("a secret") }).Times(2)
		fine.EXPECT().Inspect(gomock.Any()).Return([]port.Reading{{Part: port.PartLedger, Name: port.ReadLogFlush, Known: true, Number: 1}}).Times(2)
		s := newShop(nil)
		clock := portmock.NewMockClock(controller)
		clock.EXPECT().Now().Return(time.Now()).AnyTimes()
		examine := application.NewExamine([]application.PartInspector{{Part: port.PartBroker, Inspector: hangs}, {Part: port.PartGate, Inspector: panics},
			{Part: port.PartLedger, Inspector: fine}}, s.books, s.gate, clock, application.DefaultExamineConfig())
		for range 2 {
			begun := time.Now()
			x, err := examine.Examine(t.Context())
			if took := time.Since(begun); err != nil || took > 10*time.Second {
				t.Fatalf("%v after %v", err, took)
			}
			if x.Unknown != 2 || x.Wrong != 0 || strings.Contains(fmt.Sprint(x), "secret") {
				t.Errorf("%+v", x)
			}
			if c := checkOf(x, port.PartLedger, string(port.ReadLogFlush)); len(c) != 1 || c[0].Verdict != right {
				t.Errorf("the part that answers: %+v", c)
			}
		}
		close(release)
	})
}

func TestADatabaseThatWentBackIsFoundAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	inBubble(t, "back", func(t *testing.T) {
		s := newShop(nil)
		for i := range 3 {
			s.open(t, fmt.Sprint("p-", i), 10)
		}
		quietly := func() application.Examination {
			i := portmock.NewMockInspector(gomock.NewController(t))
			i.EXPECT().Inspect(gomock.Any()).Return([]port.Reading{{Part: port.PartGate, Name: port.ReadReachable, Known: true, Text: "yes"}})
			return examineBy(t, s.books, s.gate, i)
		}
		if x := quietly(); !x.Healthy {
			t.Fatalf("of nothing: %+v", x)
		}
		key, err := domain.NewKey("p-1", "u", "t")
		if err != nil {
			t.Fatal(err)
		}
		s.buy(t, "p-1", "t")
		order, err := domain.NewOrder(domain.OrderFields{ID: "o", Key: key, Quantity: 1, Status: domain.OrderConfirmed, StockVersion: 99})
		if err != nil {
			t.Fatal(err)
		}
		s.gate.Tell(t.Context(), []domain.Fate{order.Fate()})
		found := checkOf(quietly(), port.PartLedger, "database-went-back")
		if len(found) != 1 || found[0].Node != "p-1" || found[0].Verdict != wrong || !strings.Contains(found[0].Found, "went back") ||
			!strings.Contains(found[0].Change, "bring the database forward") {
			t.Fatalf("%+v", found)
		}
		s.change("p-1", func(f *domain.StockFields) { f.State, f.Reason = domain.SaleDamaged, "the database went back" })
		found = checkOf(quietly(), port.PartLedger, "product-damaged")
		if len(found) != 1 || found[0].Node != "p-1" || found[0].Found != "the database went back" {
			t.Errorf("%+v", found)
		}
	})
}

func TestFindingsAreLoggedWithWhatToDo(t *testing.T) {
	t.Parallel()
	x := examineWith(t, port.Reading{Part: port.PartBroker, Node: "t", Name: port.ReadTopicQueues, Known: true, Number: 1},
		port.Reading{Part: port.PartGate, Name: port.ReadIdentity, Detail: "refused"}, port.Reading{Part: port.PartGate, Name: port.ReadAppendFsync, Detail: "x"})
	var log bytes.Buffer
	x.LogFindings(slog.New(slog.NewTextHandler(&log, nil)))
	for _, want := range []string{"level=ERROR", "topic-queues", "migrate up", "level=WARN", "identity"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in\n%s", want, log.String())
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
}

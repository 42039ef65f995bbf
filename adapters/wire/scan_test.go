package wire

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"seckill/domain"
)

func scanBatch(t testing.TB, products, purchases int) domain.Batch {
	t.Helper()
	batch := domain.Batch{ID: "b-1", Kind: domain.BatchDeduct}
	for i := range purchases {
		key, err := domain.NewKey("p"+strings.Repeat("x", i%products), "u@x.org", "t:"+strings.Repeat("1", 1+i%60))
		if err != nil {
			t.Fatal(err)
		}
		batch.Items = append(batch.Items, domain.Deduction{Key: key, Quantity: int64(1 + i), Epoch: int64(i % 2), Sequence: int64(i) * 1e12,
			Attempt: strings.Repeat("a", i%3), At: time.UnixMilli(1764633600123 + int64(i)).UTC()})
	}
	return batch
}

// The JSON that Encode spells out is what encoding/json writes, and scan reads it as the parser does.
func TestSpelledOutMessagesAreThoseOfAnEncoder(t *testing.T) {
	t.Parallel()
	withdrawal := scanBatch(t, 1, 1)
	withdrawal.Kind = domain.BatchWithdraw
	for i := range withdrawal.Items {
		key, err := domain.ChangeKey("p", "k")
		if err != nil {
			t.Fatal(err)
		}
		withdrawal.Items[i].Key = key
	}
	for name, batch := range map[string]domain.Batch{"one": scanBatch(t, 1, 1), "many": scanBatch(t, 1, 90), "of many products": scanBatch(t, 40, 90),
		"withdrawal": withdrawal, "barrier": {ID: "b-1", Kind: domain.BatchBarrier}} {
		body, err := Encode(batch)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var parsed message
		if err := json.Unmarshal(body, &parsed, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again, err := stdjson.Marshal(parsed); err != nil || string(again) != string(body) {
			t.Errorf("%s: wrote %s, encoding/json %s (%v)", name, body, again, err)
		}
		if scanned, read := scan(string(body)); !read || !reflect.DeepEqual(scanned, parsed) {
			t.Errorf("%s: scanned %t %+v, parsed %+v", name, read, scanned, parsed)
		}
	}
}

// scan never reads what the parser refuses, nor anything else out of a body.
func FuzzScan(f *testing.F) {
	for _, batch := range []domain.Batch{scanBatch(f, 1, 2), scanBatch(f, 2, 3), {ID: "b-1", Kind: domain.BatchBarrier}} {
		body, err := Encode(batch)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
		f.Add(string(body) + " ")
		f.Add(strings.Replace(string(body), `"q":1`, `"q":01`, 1))
		f.Add(strings.Replace(string(body), `"b-1"`, `"b\u002d1"`, 1))
		f.Add(strings.Replace(string(body), `"v":1`, `"v":-0`, 1))
		f.Add(strings.Replace(string(body), `"epoch":0`, `"epoch":9223372036854775808`, 1))
		f.Add(strings.Replace(string(body), `"b-1"`, "\"b\xff1\"", 1))
	}
	f.Fuzz(func(t *testing.T, body string) {
		scanned, read := scan(body)
		if !read {
			return
		}
		var parsed message
		if err := json.Unmarshal([]byte(body), &parsed, json.RejectUnknownMembers(true)); err != nil || !reflect.DeepEqual(scanned, parsed) {
			t.Fatalf("%s: scanned %+v, parsed %+v (%v)", body, scanned, parsed, err)
		}
	})
}

package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/adapters/wire"
	"seckill/domain"
)

func deduction(t testing.TB, product, user, token string, quantity int64) domain.Deduction {
	t.Helper()
	key, err := domain.NewKey(product, user, token)
	if err != nil {
		t.Fatal(err)
	}
	return domain.Deduction{Key: key, Quantity: quantity, Epoch: 3, Sequence: 17, Attempt: "a-1",
		At: time.UnixMilli(1764633600123).UTC()}
}

func TestOwnFormComesBackGroupedByProductAndEpoch(t *testing.T) {
	t.Parallel()
	first, second, third := deduction(t, "p1", "u1", "t1", 1), deduction(t, "p2", "u1", "t1", 2), deduction(t, "p1", "u2", "t1", 3)
	older := deduction(t, "p1", "u3", "t1", 4)
	older.Epoch, older.Attempt = 2, ""
	body, err := wire.Encode(domain.Batch{ID: "b1", Kind: domain.BatchDeduct, Items: []domain.Deduction{first, second, third, older}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	want := []domain.Deduction{first, third, second, older}
	if got.ID != "b1" || got.Kind != domain.BatchDeduct || got.Plain || len(got.Items) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got.Items[i] != want[i] {
			t.Errorf("item %d: got %+v, want %+v", i, got.Items[i], want[i])
		}
	}
}

func withdrawal(t testing.TB, product, token string, quantity int64) domain.Deduction {
	t.Helper()
	key, err := domain.ChangeKey(product, token)
	if err != nil {
		t.Fatal(err)
	}
	return domain.Deduction{Key: key, Quantity: quantity, Epoch: 3, Sequence: 18, Attempt: "a-2", At: time.UnixMilli(1764633600123).UTC()}
}

func TestAWithdrawalComesBackAndNamesNoUser(t *testing.T) {
	t.Parallel()
	want := domain.Batch{ID: "b1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{withdrawal(t, "p1", "k1", 5), withdrawal(t, "p1", "k2", 1)}}
	body, err := wire.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); strings.Contains(text, domain.ChangeUser) || strings.Contains(text, `"u"`) {
		t.Errorf("wrote %s", text)
	}
	got, err := wire.Decode(body)
	if err != nil || got.Kind != want.Kind || len(got.Items) != 2 || got.Items[0] != want.Items[0] || got.Items[1] != want.Items[1] {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestPlainFormComesBack(t *testing.T) {
	t.Parallel()
	got, err := wire.Decode([]byte(`{"productId":"p1","uid":"u1","token":"t1","quantity":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Plain || got.Kind != domain.BatchDeduct || len(got.Items) != 1 || got.Items[0].Quantity != 2 || got.Items[0].Key.String() != "p1|u1|t1" {
		t.Fatalf("got %+v", got)
	}
	body, err := wire.Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != `{"productId":"p1","uid":"u1","token":"t1","quantity":2}` {
		t.Fatalf("got %s", body)
	}
}

func TestKindsWithoutItemsComeBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []domain.BatchKind{domain.BatchBarrier, domain.BatchWarmup} {
		body, err := wire.Encode(domain.Batch{ID: "b1", Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.Decode(body); err != nil || got.Kind != kind || got.ID != "b1" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
}

// hostile are bodies that anyone who can write to the topic may send (field cases F12, F29 and F30).
func hostile() map[string]string {
	plain := func(quantity string) string {
		return `{"productId":"p","uid":"u","token":"t","quantity":` + quantity + `}`
	}
	own := func(flow string) string {
		return `{"v":1,"kind":"deduct","id":"b","sections":[{"product":"p","epoch":1,"flows":[` + flow + `]}]}`
	}
	bodies := map[string]string{
		"empty": "", "space": " ", "null": "null", "list": "[]", "number": "1", "string": `"x"`, "object": "{}",
		"truncated": `{"productId":"p","uid":"u"`, "two values": plain("1") + plain("1"), "no utf-8": "\xff\xfe",
		"megabyte of braces": strings.Repeat("{", 1<<20), "deep lists": strings.Repeat("[", 30000),
		"deep objects": strings.Repeat(`{"v":`, 6000), "deep sections": `{"v":1,"sections":` + strings.Repeat("[", 20000),
		"unknown member": `{"productId":"p","uid":"u","token":"t","quantity":1,"price":1}`,
		"doubled member": `{"productId":"p","uid":"u","token":"t","quantity":1,"quantity":5}`,
		"other case":     `{"productid":"p","uid":"u","token":"t","quantity":1}`,
		"no quantity":    `{"productId":"p","uid":"u","token":"t"}`,
		"null id":        `{"productId":null,"uid":"u","token":"t","quantity":1}`,
		"control in id":  `{"productId":"p","uid":"a\u0001TAGS\u0001x","token":"t","quantity":1}`,
		"space in id":    `{"productId":"p","uid":"u","token":"a b","quantity":1}`,
		"long id":        `{"productId":"p","uid":"u","token":"` + strings.Repeat("t", 200) + `","quantity":1}`,
		"both forms":     `{"v":1,"kind":"deduct","id":"b","productId":"p","uid":"u","token":"t","quantity":1}`,
		"no version":     `{"kind":"deduct","id":"b","sections":[]}`, "version 2": `{"v":2,"kind":"barrier","id":"b"}`,
		"unknown kind": `{"v":1,"kind":"gift","id":"b"}`, "no id": `{"v":1,"kind":"barrier"}`,
		"empty deduct": `{"v":1,"kind":"deduct","id":"b","sections":[]}`, "null sections": `{"v":1,"kind":"deduct","id":"b","sections":null}`,
		"barrier with items":    strings.Replace(own(`{"u":"u","t":"t","q":1,"a":"a","s":1,"m":1}`), "deduct", "barrier", 1),
		"reserved user":         own(`{"u":"+stock","t":"t","q":1,"a":"a","s":1,"m":1}`),
		"no user":               own(`{"t":"t","q":1,"a":"a","s":1,"m":1}`),
		"reserved user, plain":  `{"productId":"p","uid":"+stock","token":"t","quantity":1}`,
		"withdrawal of a buyer": strings.Replace(own(`{"u":"u","t":"t","q":1,"a":"a","s":1,"m":1}`), "deduct", "withdraw", 1),
		"empty withdraw":        `{"v":1,"kind":"withdraw","id":"b","sections":[]}`,
		"negative withdrawal":   strings.Replace(own(`{"t":"t","q":-1,"a":"a","s":1,"m":1}`), "deduct", "withdraw", 1),
		"null flow":             own("null"), "empty flow": own("{}"),
		"negative sequence": own(`{"u":"u","t":"t","q":1,"a":"a","s":-1,"m":1}`),
		"negative time":     own(`{"u":"u","t":"t","q":1,"a":"a","s":1,"m":-1}`),
		"time beyond":       own(`{"u":"u","t":"t","q":1,"a":"a","s":1,"m":9223372036854775807}`),
		"bad attempt":       own(`{"u":"u","t":"t","q":1,"a":"a b","s":1,"m":1}`),
		"fraction in own":   own(`{"u":"u","t":"t","q":1.5,"a":"a","s":1,"m":1}`),
	}
	for _, q := range []string{`"1"`, `"nan"`, "NaN", "Infinity", "-inf", "0x10", `" 5 "`, "1.5", "1.0", "1e2", "1e400", `""`, "null", "true", "[1]",
		"0", "-1", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "2147483648", "1000001", "01", "+1"} {
		bodies["quantity "+q] = plain(q)
		bodies["flow quantity "+q] = own(`{"u":"u","t":"t","q":` + q + `,"a":"a","s":1,"m":1}`)
	}
	return bodies
}

func TestHostileBodiesAreRefused(t *testing.T) {
	t.Parallel()
	for name, body := range hostile() {
		if got, err := wire.Decode([]byte(body)); err == nil || !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
	}
}

func TestBatchesThatDecodeWouldRefuseAreNotWritten(t *testing.T) {
	t.Parallel()
	good := deduction(t, "p", "u", "t", 1)
	var many []domain.Deduction
	for i := range 1000 {
		many = append(many, deduction(t, "p", fmt.Sprint("u", i), "t", 1))
	}
	zero := good
	zero.Quantity = 0
	for name, batch := range map[string]domain.Batch{
		"no kind": {ID: "b", Items: []domain.Deduction{good}}, "no id": {Kind: domain.BatchDeduct, Items: []domain.Deduction{good}},
		"no items": {ID: "b", Kind: domain.BatchDeduct}, "no key": {ID: "b", Kind: domain.BatchDeduct, Items: []domain.Deduction{{Quantity: 1}}},
		"zero": {ID: "b", Kind: domain.BatchDeduct, Items: []domain.Deduction{zero}}, "too long": {ID: "b", Kind: domain.BatchDeduct, Items: many},
		"purchase to withdraw": {ID: "b", Kind: domain.BatchWithdraw, Items: []domain.Deduction{good}},
		"withdrawal to deduct": {ID: "b", Kind: domain.BatchDeduct, Items: []domain.Deduction{good, withdrawal(t, "p", "k", 1)}},
		"plain withdrawal":     {Kind: domain.BatchDeduct, Plain: true, Items: []domain.Deduction{withdrawal(t, "p", "k", 1)}},
		"plain pair":           {Kind: domain.BatchDeduct, Plain: true, Items: many[:2]},
	} {
		if body, err := wire.Encode(batch); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s: wrote %d bytes, error %v", name, len(body), err)
		}
	}
}

func TestBytesOfIsAnUpperBoundThatKeepsABatchUnderTheLimit(t *testing.T) {
	t.Parallel()
	id := func(prefix string, i, length int) string {
		return prefix + strings.Repeat("x", length-len(prefix)-6) + fmt.Sprintf("%06d", i)
	}
	for _, length := range []int{8, 16, 64} {
		for _, products := range []int{1, 1000} {
			var items []domain.Deduction
			sum := 0
			for i := 0; ; i++ {
				item := deduction(t, id("p", i%products, length), id("u", i, length), id("t", i, length), 1)
				item.Attempt, item.Sequence = id("a", i, length), int64(i)*1_000_003
				if sum+wire.BytesOf(item) > wire.ItemsMax {
					break
				}
				sum += wire.BytesOf(item)
				items = append(items, item)
			}
			body, err := wire.Encode(domain.Batch{ID: id("b", 0, 64), Kind: domain.BatchDeduct, Items: items})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("ids of %d, %d products: %d purchases in %d bytes, %d each", length, products, len(items), len(body), len(body)/len(items))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range hostile() {
		if len(body) < 4096 {
			f.Add([]byte(body))
		}
	}
	f.Add([]byte(`{"v":1,"kind":"deduct","id":"b","sections":[{"product":"p","epoch":1,"flows":[{"u":"u","t":"t","q":1,"a":"a","s":1,"m":1}]}]}`))
	f.Add([]byte(`{"v":1,"kind":"withdraw","id":"b","sections":[{"product":"p","epoch":1,"flows":[{"t":"t","q":1,"a":"a","s":1,"m":1}]}]}`))
	f.Add([]byte(`{"productId":"p","uid":"u","token":"t","quantity":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		batch, err := wire.Decode(body)
		if err != nil {
			if !errors.Is(err, domain.ErrInvalidRequest) {
				t.Fatalf("error without its code: %v", err)
			}
			return
		}
		again, err := wire.Encode(batch)
		if err != nil {
			if len(body) > wire.BodyMax/2 {
				return // shorter spellings of the same may come out longer than the limit
			}
			t.Fatalf("accepted and cannot be written: %v", err)
		}
		if !batch.Plain { // written once, it is in the order of its sections and stays as it is
			if batch, err = wire.Decode(again); err != nil {
				t.Fatalf("written and refused: %v", err)
			}
		}
		if same, err := wire.Encode(batch); err != nil || !bytes.Equal(same, again) {
			t.Fatalf("got %s, %v; was %s", same, err, again)
		}
		twice, err := wire.Decode(again)
		if err != nil || len(twice.Items) != len(batch.Items) || twice.Kind != batch.Kind || twice.ID != batch.ID || twice.Plain != batch.Plain || !slices.Equal(twice.Items, batch.Items) {
			t.Fatalf("got %+v, %v; was %+v", twice, err, batch)
		}
	})
}

func benchmarkBatch(b *testing.B) domain.Batch {
	batch := domain.Batch{ID: "019adf6a0e2b7c9a8f00000000000001", Kind: domain.BatchDeduct}
	for i := range 150 {
		batch.Items = append(batch.Items, deduction(b, "product-00000001", fmt.Sprintf("user-%011d", i), fmt.Sprintf("token-%010d", i), 1))
	}
	return batch
}

func BenchmarkEncode150(b *testing.B) {
	batch := benchmarkBatch(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Encode(batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode150(b *testing.B) {
	body, err := wire.Encode(benchmarkBatch(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Decode(body); err != nil {
			b.Fatal(err)
		}
	}
}

package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"

	"seckill/domain"
)

// BodyMax is the longest body, in bytes. What is longer is refused both ways.
const BodyMax = 32 << 10

// envelopeMax is what a message takes beside its items, at most.
const envelopeMax = 256

// ItemsMax is how many bytes the items of one message may take, as BytesOf counts them.
const ItemsMax = BodyMax - envelopeMax

const version = 1

// message is both forms at once; which one it is shows in v. Pointers tell absent from zero.
type message struct {
	Version  *int64    `json:"v,omitzero"`
	Kind     string    `json:"kind,omitzero"`
	ID       string    `json:"id,omitzero"`
	Sections []section `json:"sections,omitzero"`

	Product  *string `json:"productId,omitzero"`
	User     *string `json:"uid,omitzero"`
	Token    *string `json:"token,omitzero"`
	Quantity *int64  `json:"quantity,omitzero"`
}

type section struct {
	Product string `json:"product"`
	Epoch   int64  `json:"epoch"`
	Flows   []flow `json:"flows"`
}

type flow struct {
	User     string `json:"u,omitempty"` // none in a withdrawal
	Token    string `json:"t"`
	Quantity int64  `json:"q"`
	Attempt  string `json:"a,omitempty"`
	Sequence int64  `json:"s"`
	Millis   int64  `json:"m"`
}

// Encode writes a batch. Items are gathered by product and epoch, in order of first appearance.
// The error has domain.CodeInvalidRequest: a batch that Decode would refuse is not written.
func Encode(batch domain.Batch) ([]byte, error) {
	m, err := messageOf(batch)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, refused("cannot be written", err)
	}
	if len(body) > BodyMax {
		return nil, refused(fmt.Sprintf("takes %d bytes, more than %d", len(body), BodyMax), nil)
	}
	return body, nil
}

func messageOf(batch domain.Batch) (message, error) {
	for _, item := range batch.Items {
		if err := checkItem(item); err != nil {
			return message{}, err
		}
	}
	if batch.Plain {
		return plainMessage(batch)
	}
	if err := checkEnvelope(batch); err != nil {
		return message{}, err
	}
	v := int64(version)
	return message{Version: &v, Kind: batch.Kind.String(), ID: batch.ID, Sections: sectionsOf(batch.Items)}, nil
}

func plainMessage(batch domain.Batch) (message, error) {
	if batch.Kind != domain.BatchDeduct || len(batch.Items) != 1 {
		return message{}, refused("in the plain form holds one deduction", nil)
	}
	item := batch.Items[0]
	if item.Key.IsChange() {
		return message{}, refused("in the plain form holds no withdrawal", nil)
	}
	product, user, token := item.Key.Product(), item.Key.User(), item.Key.Token()
	return message{Product: &product, User: &user, Token: &token, Quantity: &item.Quantity}, nil
}

func sectionsOf(items []domain.Deduction) []section {
	type place struct {
		product string
		epoch   int64
	}
	var sections []section
	at := make(map[place]int)
	for _, item := range items {
		p := place{item.Key.Product(), item.Epoch}
		i, known := at[p]
		if !known {
			i = len(sections)
			at[p] = i
			sections = append(sections, section{Product: p.product, Epoch: p.epoch})
		}
		user := item.Key.User()
		if item.Key.IsChange() {
			user = ""
		}
		sections[i].Flows = append(sections[i].Flows, flow{
			User: user, Token: item.Key.Token(), Quantity: item.Quantity,
			Attempt: item.Attempt, Sequence: item.Sequence, Millis: item.At.UnixMilli(),
		})
	}
	return sections
}

// Decode reads a body that anyone may have written. The error has domain.CodeInvalidRequest.
func Decode(body []byte) (domain.Batch, error) {
	if len(body) > BodyMax {
		return domain.Batch{}, refused(fmt.Sprintf("takes %d bytes, more than %d", len(body), BodyMax), nil)
	}
	var m message
	if err := json.Unmarshal(body, &m, json.RejectUnknownMembers(true)); err != nil {
		return domain.Batch{}, refused("is not in a known form", err)
	}
	if m.Version == nil {
		return m.plain()
	}
	return m.own()
}

func (m message) plain() (domain.Batch, error) {
	if m.Kind != "" || m.ID != "" || m.Sections != nil {
		return domain.Batch{}, refused("names no version", nil)
	}
	if m.Product == nil || m.User == nil || m.Token == nil || m.Quantity == nil {
		return domain.Batch{}, refused("lacks a member of the plain form", nil)
	}
	key, err := domain.NewKey(*m.Product, *m.User, *m.Token)
	if err != nil {
		return domain.Batch{}, err
	}
	if err := domain.CheckQuantity("quantity", *m.Quantity); err != nil {
		return domain.Batch{}, err
	}
	return domain.Batch{Kind: domain.BatchDeduct, Plain: true,
		Items: []domain.Deduction{{Key: key, Quantity: *m.Quantity}}}, nil
}

func (m message) own() (domain.Batch, error) {
	if *m.Version != version {
		return domain.Batch{}, refused(fmt.Sprintf("is of version %d", *m.Version), nil)
	}
	if m.Product != nil || m.User != nil || m.Token != nil || m.Quantity != nil {
		return domain.Batch{}, refused("mixes both forms", nil)
	}
	kind, err := domain.ParseBatchKind(m.Kind)
	if err != nil {
		return domain.Batch{}, err
	}
	batch := domain.Batch{ID: m.ID, Kind: kind}
	for _, s := range m.Sections {
		for _, f := range s.Flows {
			item, err := deductionOf(kind, s, f)
			if err != nil {
				return domain.Batch{}, err
			}
			batch.Items = append(batch.Items, item)
		}
	}
	return batch, checkEnvelope(batch)
}

func deductionOf(kind domain.BatchKind, s section, f flow) (domain.Deduction, error) {
	key, err := keyOf(kind, s, f)
	if err != nil {
		return domain.Deduction{}, err
	}
	item := domain.Deduction{Key: key, Quantity: f.Quantity, Epoch: s.Epoch, Sequence: f.Sequence,
		Attempt: f.Attempt, At: time.UnixMilli(f.Millis).UTC()}
	return item, checkItem(item)
}

// keyOf gives a flow the key that its kind calls for: a purchase names its buyer, a withdrawal nobody.
func keyOf(kind domain.BatchKind, s section, f flow) (domain.Key, error) {
	switch {
	case kind != domain.BatchWithdraw:
		return domain.NewKey(s.Product, f.User, f.Token)
	case f.User != "":
		return domain.Key{}, refused("names the buyer of a withdrawal", nil)
	}
	return domain.ChangeKey(s.Product, f.Token)
}

func checkEnvelope(batch domain.Batch) error {
	if err := domain.CheckID("id", batch.ID); err != nil {
		return err
	}
	switch batch.Kind {
	case domain.BatchDeduct, domain.BatchWithdraw:
		if len(batch.Items) == 0 {
			return refused("holds nothing", nil)
		}
		for _, item := range batch.Items {
			if item.Kind() != batch.Kind {
				return refused("holds what is not of its kind", nil)
			}
		}
	case domain.BatchBarrier, domain.BatchWarmup:
		if len(batch.Items) > 0 {
			return refused("of this kind holds nothing", nil)
		}
	default:
		return refused("has no kind", nil)
	}
	return nil
}

// millisMax is the year 9999: what is beyond was never written by a clock.
const millisMax = 253402300799999

func checkItem(item domain.Deduction) error {
	if item.Key.IsZero() {
		return refused("names no key", nil)
	}
	if err := domain.CheckQuantity("quantity", item.Quantity); err != nil {
		return err
	}
	if item.Epoch < 0 || item.Sequence < 0 {
		return refused("has a negative epoch or sequence", nil)
	}
	if ms := item.At.UnixMilli(); !item.At.IsZero() && (ms < 0 || ms > millisMax) {
		return refused("has a time out of range", nil)
	}
	if item.Attempt == "" {
		return nil // a flow that was written back from its row has none
	}
	return domain.CheckID("attempt", item.Attempt)
}

// BytesOf is how many bytes an item takes in a message, at most: with a section of its own.
func BytesOf(item domain.Deduction) int {
	return len(`{"product":"","epoch":,"flows":[]},`) + len(item.Key.Product()) + digits(item.Epoch) +
		len(`{"u":"","t":"","q":,"a":"","s":,"m":},`) + len(item.Key.User()) + len(item.Key.Token()) +
		digits(item.Quantity) + len(item.Attempt) + digits(item.Sequence) + digits(item.At.UnixMilli())
}

func digits(n int64) int {
	if n < 0 {
		if n == math.MinInt64 {
			return 20
		}
		return 1 + digits(-n)
	}
	d := 1
	for n >= 10 {
		n /= 10
		d++
	}
	return d
}

func refused(detail string, cause error) *domain.Error {
	return &domain.Error{Code: domain.CodeInvalidRequest, Field: "body", Detail: "message " + detail, Cause: cause}
}

package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
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
	size := envelopeMax
	for _, item := range batch.Items {
		if err := checkItem(item); err != nil {
			return nil, err
		}
		size += BytesOf(item)
	}
	body := make([]byte, 0, min(size, BodyMax))
	var err error
	if batch.Plain {
		body, err = appendPlain(body, batch)
	} else if err = checkEnvelope(batch); err == nil {
		body = appendOwn(body, batch)
	}
	if err != nil {
		return nil, err
	}
	if len(body) > BodyMax {
		return nil, refused(fmt.Sprintf("takes %d bytes, more than %d", len(body), BodyMax), nil)
	}
	return body, nil
}

func appendPlain(to []byte, batch domain.Batch) ([]byte, error) {
	if batch.Kind != domain.BatchDeduct || len(batch.Items) != 1 {
		return nil, refused("in the plain form holds one deduction", nil)
	}
	item := batch.Items[0]
	if item.Key.IsChange() {
		return nil, refused("in the plain form holds no withdrawal", nil)
	}
	to = appendText(to, `{"productId":"`, item.Key.Product(), `","uid":"`, item.Key.User(), `","token":"`, item.Key.Token())
	return append(appendNumber(to, `","quantity":`, item.Quantity), '}'), nil
}

// appendOwn spells JSON out: every string is an id, so none needs an escape.
func appendOwn(to []byte, batch domain.Batch) []byte {
	to = appendNumber(to, `{"v":`, version)
	to = appendText(to, `,"kind":"`, batch.Kind.String(), `","id":"`, batch.ID, `"`)
	before := `,"sections":[`
	for _, places := range sectionsOf(batch.Items) {
		first := batch.Items[places[0]]
		to = appendText(to, before, `{"product":"`, first.Key.Product())
		to = appendNumber(to, `","epoch":`, first.Epoch)
		before = `,"flows":[`
		for _, i := range places {
			to = appendFlow(append(to, before...), batch.Items[i])
			before = `,`
		}
		to = append(to, `]}`...)
	}
	if len(batch.Items) > 0 {
		to = append(to, ']')
	}
	return append(to, '}')
}

func appendFlow(to []byte, item domain.Deduction) []byte {
	to = append(to, '{')
	if !item.Key.IsChange() {
		to = appendText(to, `"u":"`, item.Key.User(), `",`)
	}
	to = appendText(to, `"t":"`, item.Key.Token())
	to = appendNumber(to, `","q":`, item.Quantity)
	if item.Attempt != "" {
		to = appendText(to, `,"a":"`, item.Attempt, `"`)
	}
	to = appendNumber(to, `,"s":`, item.Sequence)
	return append(appendNumber(to, `,"m":`, item.At.UnixMilli()), '}')
}

func appendText(to []byte, parts ...string) []byte {
	for _, p := range parts {
		to = append(to, p...)
	}
	return to
}

func appendNumber(to []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(to, before...), n, 10)
}

// sectionsOf are the places of the items of each section.
func sectionsOf(items []domain.Deduction) [][]int {
	type place struct {
		product string
		epoch   int64
	}
	var sections [][]int
	at := make(map[place]int)
	var last place
	n := -1
	for i, item := range items {
		if p := (place{item.Key.Product(), item.Epoch}); n < 0 || p != last {
			var known bool
			if n, known = at[p]; !known {
				n = len(sections)
				at[p] = n
				sections = append(sections, nil)
			}
			last = p
		}
		sections[n] = append(sections[n], i)
	}
	return sections
}

// Decode reads a body that anyone may have written. The error has domain.CodeInvalidRequest.
func Decode(body []byte) (domain.Batch, error) {
	if len(body) > BodyMax {
		return domain.Batch{}, refused(fmt.Sprintf("takes %d bytes, more than %d", len(body), BodyMax), nil)
	}
	m, read := scan(string(body))
	if !read {
		m = message{}
		if err := json.Unmarshal(body, &m, json.RejectUnknownMembers(true)); err != nil {
			return domain.Batch{}, refused("is not in a known form", err)
		}
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
	items := 0
	for _, s := range m.Sections {
		items += len(s.Flows)
	}
	batch := domain.Batch{ID: m.ID, Kind: kind, Items: slices.Grow([]domain.Deduction(nil), items)}
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

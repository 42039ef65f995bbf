package redislua

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/domain"
)

// What record.lua makes of a record.
const (
	recordAbsent   = "A"
	recordRewound  = "W"
	recordBuilding = "B"
	recordShut     = "S"
	recordOpen     = "O"
)

// head is the first field of every reply.
type head struct {
	state     string
	epoch     int64
	sequence  int64
	remaining int64
}

func (h head) sound() bool { return h.state != recordAbsent && h.state != recordRewound }

// readable reports whether the absence of a flow proves anything.
func (h head) readable() bool { return h.state == recordOpen || h.state == recordShut }

// parseReply takes a reply apart: its head, and the fields behind it.
func parseReply(reply string) (head, []string, error) {
	fields := strings.Split(reply, " ")
	var parts [4]string
	if !split(fields[0], parts[:]) {
		return head{}, nil, fmt.Errorf("redislua: a reply begins with %q", fields[0])
	}
	var n [3]int64
	if err := parseNumbers(parts[1:], n[:]); err != nil {
		return head{}, nil, err
	}
	return head{parts[0], n[0], n[1], n[2]}, fields[1:], nil
}

// split fills parts with what stands between the bars of s; false if there are more or fewer. It is done for
// every flow of every batch, so it allocates nothing.
func split(s string, parts []string) bool {
	for i := range parts {
		var more bool
		if parts[i], s, more = strings.Cut(s, "|"); more != (i < len(parts)-1) {
			return false
		}
	}
	return true
}

// parseNumbers fills numbers, as many as parts.
func parseNumbers(parts []string, numbers []int64) error {
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return fmt.Errorf("redislua: a reply holds %q for a number: %w", p, err)
		}
		numbers[i] = n
	}
	return nil
}

// The letters of a packed flow, by state.
var flowLetters = [...]string{domain.FlowDeducted: "D", domain.FlowSettled: "S", domain.FlowReleased: "C", domain.FlowRefused: "T"}

func flowState(letter string) domain.FlowState {
	for s, l := range flowLetters {
		if l != "" && l == letter {
			return domain.FlowState(s)
		}
	}
	return domain.FlowAbsent
}

// parseFlow reads state|quantity|from|sequence|epoch|milliseconds|attempt.
func parseFlow(key domain.Key, packed string) (domain.Flow, error) {
	var parts [7]string
	if !split(packed, parts[:]) {
		return domain.Flow{}, fmt.Errorf("redislua: %q is no flow", packed)
	}
	seenFrom := parts[2] != ""
	if !seenFrom {
		parts[2] = "0"
	}
	var n [5]int64
	if err := parseNumbers(parts[1:6], n[:]); err != nil {
		return domain.Flow{}, err
	}
	f := domain.FlowFields{Key: key, State: flowState(parts[0]), Quantity: n[0], From: n[1], Sequence: n[2],
		Epoch: n[3], At: time.UnixMilli(n[4]), Attempt: parts[6]}
	if seenFrom {
		f.To = f.From - f.Quantity
	}
	return domain.NewFlow(f)
}

package system

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"seckill/application/port"
)

var (
	_ port.Clock = Clock{}
	_ port.IDs   = (*IDs)(nil)
)

// Clock is the wall clock, in UTC.
type Clock struct{}

// Now is the time in UTC.
func (Clock) Now() time.Time { return time.Now().UTC() }

// IDs makes ids; safe for concurrent use.
type IDs struct {
	prefix  string
	counter atomic.Uint64
}

// NewIDs chooses this process's prefix: 40 random bits.
func NewIDs() *IDs {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return &IDs{prefix: strings.ToLower(base32.StdEncoding.EncodeToString(b[:])) + "-"}
}

// Attempt is the prefix and the next number, base 36.
func (i *IDs) Attempt() string {
	var room [40]byte
	return string(strconv.AppendUint(append(room[:0], i.prefix...), i.counter.Add(1), 36))
}

// Unique is a UUID of version 7 as 32 hexadecimal digits.
func (i *IDs) Unique() string {
	id := uuid.Must(uuid.NewV7()) // fails only with the system's randomness, which cannot
	return hex.EncodeToString(id[:])
}

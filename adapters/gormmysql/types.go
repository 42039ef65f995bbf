package gormmysql

import (
	"bytes"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/domain"
)

// binaryID is a UUID as its 16 bytes; in Go it is 32 hexadecimal digits.
type binaryID [16]byte

// newID is of version 7: those made one after the other ascend, so rows of one group lie
// beside each other in the primary key.
func newID() binaryID {
	return binaryID(uuid.Must(uuid.NewV7())) // fails only with the system's randomness, which cannot
}

// parseID reads 32 hexadecimal digits; the error has CodeInvalidRequest.
func parseID(s string) (binaryID, error) {
	var id binaryID
	if len(s) != hex.EncodedLen(len(id)) {
		return id, domain.NewError(domain.CodeInvalidRequest, "an id has 32 hexadecimal digits", nil)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return id, domain.NewError(domain.CodeInvalidRequest, "an id has 32 hexadecimal digits", err)
	}
	return id, nil
}

func parseIDs(ids []string) ([]binaryID, error) {
	parsed := make([]binaryID, len(ids))
	for i, s := range ids {
		id, err := parseID(s)
		if err != nil {
			return nil, err
		}
		parsed[i] = id
	}
	return parsed, nil
}

// String is the form that the rest of the program sees.
func (id binaryID) String() string { return hex.EncodeToString(id[:]) }

// Value stores the bytes.
func (id binaryID) Value() (driver.Value, error) { return bytes.Clone(id[:]), nil }

// Scan reads the bytes.
func (id *binaryID) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(id) {
		return fmt.Errorf("an id of type %T, %d bytes", src, len(b))
	}
	copy(id[:], b)
	return nil
}

// timeLayout is read and written by both databases and sorts as it reads.
const timeLayout = "2006-01-02 15:04:05.000"

// utcTime is a time in UTC with milliseconds; the zero time is NULL. It is written as text, which
// MySQL takes for a DATETIME(3) whatever the driver's settings are, and SQLite keeps.
type utcTime struct{ at time.Time }

func timeOf(t time.Time) utcTime { return utcTime{t} }

// Value stores the text.
func (t utcTime) Value() (driver.Value, error) {
	if t.at.IsZero() {
		return nil, nil //nolint:nilnil // NULL
	}
	return t.at.UTC().Format(timeLayout), nil
}

// Scan reads what either driver gives.
func (t *utcTime) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.at = time.Time{}
		return nil
	case time.Time:
		t.at = v.UTC()
		return nil
	case []byte:
		return t.parse(string(v))
	case string:
		return t.parse(v)
	}
	return fmt.Errorf("a time of type %T", src)
}

func (t *utcTime) parse(s string) (err error) {
	t.at, err = time.ParseInLocation(timeLayout, s, time.UTC)
	return err
}

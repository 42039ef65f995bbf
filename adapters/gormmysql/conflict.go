package gormmysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/cenkalti/backoff/v5"
	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"seckill/domain"
)

// errMoved ends a try that read something which has changed since.
var errMoved = errors.New("the product moved while the group was written")

// fault is what a driver's error means to us.
type fault uint8

const (
	faultOther     fault = iota // not worth an immediate retry, nothing wrong with the data
	faultTransient              // a whole new transaction may succeed
	faultData                   // the database will never take this
)

// mysqlFaults are the errors that MySQL and MariaDB answer.
var mysqlFaults = map[uint16]fault{
	1020: faultTransient, // record has changed since last read (MariaDB's snapshot isolation)
	1040: faultTransient, // too many connections
	1053: faultTransient, // server shutdown in progress
	1205: faultTransient, // lock wait timeout: only the statement was rolled back
	1213: faultTransient, // deadlock
	1317: faultTransient, // query interrupted
	1927: faultTransient, // connection was killed

	1048: faultData, // column cannot be null
	1264: faultData, // out of range
	1265: faultData, // data truncated
	1292: faultData, // incorrect value
	1366: faultData, // incorrect string or number
	1406: faultData, // data too long
	1690: faultData, // out of range in an expression
	3819: faultData, // check constraint (MySQL)
	4025: faultData, // check constraint (MariaDB)
}

// SQLite's primary result codes, the low byte of the extended ones.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
)

func classify(err error) fault {
	var m *mysql.MySQLError
	var s *sqlite.Error
	var n net.Error
	switch {
	case errors.Is(err, errMoved):
		return faultTransient
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return faultOther
	case errors.As(err, &m):
		return mysqlFaults[m.Number]
	case errors.As(err, &s):
		switch s.Code() & 0xff {
		case sqliteBusy, sqliteLocked:
			return faultTransient
		case sqliteTooBig, sqliteConstraint, sqliteMismatch:
			return faultData
		}
		return faultOther
	case errors.Is(err, gorm.ErrDuplicatedKey), errors.Is(err, gorm.ErrCheckConstraintViolated):
		return faultData
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &n):
		return faultTransient
	}
	return faultOther
}

// translate gives a driver's error its code, once; errors that have one keep it.
func translate(err error) error {
	var d *domain.Error
	if err == nil || errors.As(err, &d) {
		return err
	}
	if classify(err) == faultData {
		return domain.NewError(domain.CodeInvalidRequest, "the database refuses this", err)
	}
	return domain.NewError(domain.CodeUnavailable, "the database did not do it", err)
}

// inTx runs do in a transaction and commits. Whatever goes wrong in it, or in the commit, rolls the
// whole of it back; what may succeed in a new one is tried again, a bounded number of times with
// jitter, so do must make its ids anew each time. An unknown outcome of a commit is such a case:
// do then meets the rows of the try before. The error has its code.
func (s *Store) inTx(ctx context.Context, do func(tx *gorm.DB) error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = pauseFirst, pauseMax, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := s.writer.WithContext(ctx).Transaction(do)
		if err != nil && classify(err) != faultTransient {
			err = backoff.Permanent(err)
		} else if err != nil {
			s.again.Add(1)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(triesMax), backoff.WithMaxElapsedTime(triesTime))
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Unwrap()
	}
	return translate(err)
}

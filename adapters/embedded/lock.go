package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"seckill/domain"
)

// LockFolder makes the data folder if it is not there and takes it for this process alone, until
// release is called or the process ends, however it ends. CodeUnavailable: another process has it.
func LockFolder(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the data folder cannot be made", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the data folder cannot be locked", err)
	}
	// The file stays: removing it would let two processes lock two files of one name.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		detail := fmt.Sprintf("the data folder %s cannot be locked", dir)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			detail = fmt.Sprintf("the data folder %s is in use by another process", dir)
		}
		return nil, domain.NewError(domain.CodeUnavailable, detail, errors.Join(err, file.Close()))
	}
	return file.Close, nil
}

package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The kinds of a record. All but recordNext name a message; recordHalf and recordMessage carry its body.
const (
	recordHalf     byte = iota + 1 // a half message
	recordCommit                   // its commit
	recordRollback                 // its rollback
	recordMessage                  // a message that was committed from birth
	recordFinished                 // the consumer has finished it
	recordNext                     // numbers below this one have been used
)

// headerBytes is length, checksum, kind and number: the checksum covers all that follows it.
const headerBytes = 4 + 4 + 1 + 8

// recordBytesMax is longer than any body that the broker takes.
const recordBytesMax = 8 << 20

const journalName = "broker.journal"

type record struct {
	kind   byte
	number int64
	body   []byte
}

func (r record) appendTo(buf []byte) []byte {
	start := len(buf)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(r.body)))
	buf = binary.LittleEndian.AppendUint32(buf, 0)
	buf = append(buf, r.kind)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(r.number))
	buf = append(buf, r.body...)
	// The length is part of what is summed, so that a torn header is noticed, too.
	sum := crc32.Update(crc32.ChecksumIEEE(buf[start:start+4]), crc32.IEEETable, buf[start+8:])
	binary.LittleEndian.PutUint32(buf[start+4:], sum)
	return buf
}

// readRecord gives io.EOF at the end, and io.ErrUnexpectedEOF for a record that was torn.
func readRecord(r io.Reader) (record, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return record{}, err
	}
	length := binary.LittleEndian.Uint32(header[0:])
	if length > recordBytesMax {
		return record{}, io.ErrUnexpectedEOF
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return record{}, io.ErrUnexpectedEOF
	}
	sum := crc32.Update(crc32.ChecksumIEEE(header[0:4]), crc32.IEEETable, header[8:])
	if crc32.Update(sum, crc32.IEEETable, body) != binary.LittleEndian.Uint32(header[4:]) {
		return record{}, io.ErrUnexpectedEOF
	}
	return record{kind: header[8], number: int64(binary.LittleEndian.Uint64(header[9:])), body: body}, nil
}

// readJournal gives each whole record to apply and says how many bytes behind the last one it
// left: the tail of a write that a crash tore, which nobody was told of.
func readJournal(dir string, apply func(record)) (torn int64, err error) {
	file, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // only read from
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	whole := int64(0)
	for {
		r, err := readRecord(reader)
		switch {
		case err == nil:
			whole += headerBytes + int64(len(r.body))
			apply(r)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return info.Size() - whole, nil
		default:
			return 0, err
		}
	}
}

// journal appends records. Appends are cheap and never wait; the flusher writes whatever has
// gathered in one go, and syncs it when somebody waits for that.
type journal struct {
	dir      string
	bytesMax int64                   // the file is written anew when it has grown beyond this, and doubled
	image    func(cut func()) []byte // everything that is alive, as records; calls cut at that moment

	mu       sync.Mutex
	moved    *sync.Cond
	buffer   []byte
	appended int64 // bytes ever appended
	wanted   int64 // of those, to be synced
	synced   int64
	closed   bool
	stopped  bool  // the flusher is gone
	err      error // sticky: a journal that failed once takes nothing more

	file    *os.File
	size    int64
	sizeNew int64 // when it was last written anew
	done    chan struct{}
}

// openJournal writes the journal anew from what is alive, which drops a torn tail and all that is finished.
func openJournal(dir string, bytesMax int64, image func(cut func()) []byte) (*journal, error) {
	j := &journal{dir: dir, bytesMax: bytesMax, image: image, done: make(chan struct{})}
	j.moved = sync.NewCond(&j.mu)
	if err := j.replace(image(func() {})); err != nil {
		return nil, err
	}
	go j.flush()
	return j, nil
}

// append adds records, in order, and gives the mark to wait for with sync.
func (j *journal) append(records ...record) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped {
		return j.appended + 1 // never synced
	}
	before := len(j.buffer)
	for _, r := range records {
		j.buffer = r.appendTo(j.buffer)
	}
	j.appended += int64(len(j.buffer) - before)
	j.moved.Broadcast()
	return j.appended
}

// sync waits until everything up to the mark is on disk.
func (j *journal) sync(mark int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wanted = max(j.wanted, mark)
	j.moved.Broadcast()
	for j.synced < mark && j.err == nil {
		if j.stopped {
			return os.ErrClosed
		}
		j.moved.Wait()
	}
	return j.err
}

// failure is what the journal failed with, or nil.
func (j *journal) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// cut empties the buffer: the caller's image holds what was in it.
func (j *journal) cut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.buffer = j.buffer[:0]
}

func (j *journal) flush() {
	defer close(j.done)
	var spare []byte
	for {
		j.mu.Lock()
		for len(j.buffer) == 0 && j.wanted <= j.synced && !j.closed && j.err == nil {
			j.moved.Wait()
		}
		if j.err != nil || j.closed && len(j.buffer) == 0 && j.wanted <= j.synced {
			j.stopped = true
			j.moved.Broadcast()
			j.mu.Unlock()
			return
		}
		batch, mark, toSync := j.buffer, j.appended, j.wanted > j.synced || j.closed
		j.buffer = spare[:0]
		j.mu.Unlock()

		err := j.write(batch, toSync)
		spare = batch
		j.finish(mark, toSync, err)
		// A journal full of living messages must not be written anew at every record.
		if err == nil && j.size > max(j.bytesMax, 2*j.sizeNew) {
			mark, err := j.compact()
			j.finish(mark, true, err)
		}
	}
}

func (j *journal) finish(mark int64, synced bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.err = err
	} else if synced {
		j.synced = max(j.synced, mark)
	}
	j.moved.Broadcast()
}

func (j *journal) write(batch []byte, toSync bool) error {
	if len(batch) > 0 {
		n, err := j.file.Write(batch)
		j.size += int64(n)
		if err != nil {
			return fmt.Errorf("write the broker's journal: %w", err)
		}
	}
	if toSync {
		if err := j.file.Sync(); err != nil {
			return fmt.Errorf("sync the broker's journal: %w", err)
		}
	}
	return nil
}

// compact writes what is alive into a new file. The image is taken and the buffer emptied under
// the broker's lock, so that no record is in both and none in neither.
func (j *journal) compact() (int64, error) {
	image := j.image(j.cut)
	j.mu.Lock()
	mark := j.appended - int64(len(j.buffer))
	j.mu.Unlock()
	return mark, j.replace(image)
}

func (j *journal) replace(image []byte) error {
	path := filepath.Join(j.dir, journalName)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the broker's journal: %w", err)
	}
	_, err = file.Write(image)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncFolder(j.dir)
	}
	if err != nil {
		return fmt.Errorf("write the broker's journal anew: %w", errors.Join(err, file.Close()))
	}
	if j.file != nil {
		err = j.file.Close()
	}
	j.file, j.size, j.sizeNew = file, int64(len(image)), int64(len(image))
	return err
}

// syncFolder makes a rename survive a power cut.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// close writes and syncs what is left.
func (j *journal) close() error {
	j.mu.Lock()
	j.closed = true
	j.moved.Broadcast()
	j.mu.Unlock()
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.err, j.file.Close())
}

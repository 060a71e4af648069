package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"
)

// Spool keeps a stream in a temporary file, 28 bytes a record, so that it can be
// replayed without being held in memory or parsed again.
type Spool struct {
	file *os.File
	w    *bufio.Writer
	buf  [recordSize]byte
}

const recordSize = 28

// NewSpool makes an empty spool in the system's directory for temporary files.
func NewSpool() (*Spool, error) {
	f, err := os.CreateTemp("", "headgate-size-")
	if err != nil {
		return nil, err
	}
	return &Spool{file: f, w: bufio.NewWriterSize(f, 1<<16)}, nil
}

// Add appends a record.
func (s *Spool) Add(r Record) error {
	b := s.buf[:]
	binary.LittleEndian.PutUint64(b, uint64(r.Arrived))
	took := uint64(r.Took) << 1
	if r.Timed {
		took |= 1
	}
	binary.LittleEndian.PutUint64(b[8:], took)
	binary.LittleEndian.PutUint64(b[16:], r.Caller)
	binary.LittleEndian.PutUint16(b[24:], r.Route)
	binary.LittleEndian.PutUint16(b[26:], r.Status)
	_, err := s.w.Write(b)
	return err
}

// Each hands the records to f in the order in which they were added.
func (s *Spool) Each(f func(Record)) error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, b := bufio.NewReaderSize(s.file, 1<<16), s.buf[:]
	for {
		if _, err := io.ReadFull(r, b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		took := binary.LittleEndian.Uint64(b[8:])
		f(Record{
			Arrived: time.Duration(binary.LittleEndian.Uint64(b)),
			Took:    time.Duration(took >> 1),
			Timed:   took&1 == 1,
			Caller:  binary.LittleEndian.Uint64(b[16:]),
			Route:   binary.LittleEndian.Uint16(b[24:]),
			Status:  binary.LittleEndian.Uint16(b[26:]),
		})
	}
}

// Close removes the file.
func (s *Spool) Close() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

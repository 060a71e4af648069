package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
)

// LongestLine is how much of a line is read; a longer one is malformed.
const LongestLine = 64 << 10

// ErrLong is the error of a line above LongestLine.
var ErrLong = errors.New("line longer than 64 KiB")

// Lines reads the lines of a log, gzipped or not. The bytes are valid until the
// next line. With [ErrLong] comes the beginning of the line, and reading goes on;
// any other error is the last that comes. Of a line in whose midst the log breaks
// off nothing comes: what is left of a number is another number.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in, err := plainText(bufio.NewReaderSize(r, LongestLine))
		for err == nil {
			var line []byte
			line, err = in.ReadSlice('\n')
			var fault error
			if errors.Is(err, bufio.ErrBufferFull) {
				line, fault = bytes.Clone(line[:80]), ErrLong
				err = skipLine(in)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				break
			}
			if len(line) > 0 && !yield(bytes.TrimRight(line, "\r\n"), fault) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}

// packed are the beginnings of files that have to be unpacked first.
var packed = map[string]string{
	"\x28\xb5\x2f\xfd": "zstd -dc", "BZh": "bzip2 -dc", "\xfd7zXZ": "xz -dc", "PK\x03\x04": "unzip -p",
}

func plainText(in *bufio.Reader) (*bufio.Reader, error) {
	head, _ := in.Peek(5)
	for magic, tool := range packed {
		if bytes.HasPrefix(head, []byte(magic)) {
			return nil, fmt.Errorf("the log is packed: %s FILE | headgate size -accesslog -", tool)
		}
	}
	if !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return bufio.NewReaderSize(z, LongestLine), nil
}

func skipLine(in *bufio.Reader) error {
	for {
		if _, err := in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

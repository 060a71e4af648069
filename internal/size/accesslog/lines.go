package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"iter"
)

// LongestLine is how much of a line is read; a longer one is malformed.
const LongestLine = 64 << 10

// ErrLong is the error of a line above LongestLine.
var ErrLong = errors.New("line longer than 64 KiB")

// Lines reads the lines of a log, gzipped or not. The bytes are valid until the
// next line. With [ErrLong] comes the beginning of the line, and reading goes on;
// any other error is the last that comes.
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
			if len(line) > 0 && !yield(bytes.TrimRight(line, "\r\n"), fault) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}

func plainText(in *bufio.Reader) (*bufio.Reader, error) {
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
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

package informers

import (
	"fmt"
	"io"
)

const (
	// firstBuffer is for usual objects; it grows with what comes in.
	firstBuffer = 16 << 10
	// largest is how many bytes an event may have. An object in etcd has no more than 1.5 MiB.
	largest = 16 << 20
)

// frames cuts a stream into JSON values, of which only the brackets count. Whether something stands between them does
// not matter: an event is shown as soon as it is complete.
type frames struct {
	from   io.ReadCloser
	buffer []byte // what was read, and is not shown yet
	filled []byte // the memory of the buffer
	end    int    // of the value in the buffer; 0 as long as it is not complete
	shown  int    // how much of it was shown

	// where the search for the end has come to
	at, depth        int
	quoted, escaping bool
}

// Read shows the next value, or a part of it: io.ErrShortBuffer says that the rest of the same value follows.
func (f *frames) Read(into []byte) (int, error) {
	for f.end == 0 {
		if f.end = f.search(); f.end == 0 {
			if err := f.more(); err != nil {
				return 0, err
			}
		}
	}
	n := copy(into, f.buffer[f.shown:f.end])
	if f.shown += n; f.shown < f.end {
		return n, io.ErrShortBuffer
	}
	f.buffer = f.buffer[f.end:]
	f.end, f.shown, f.at = 0, 0, 0
	return n, nil
}

// search goes on to the end of the value, and gives the place after it; 0 if that has not come yet.
func (f *frames) search() int {
	for ; f.at < len(f.buffer); f.at++ {
		switch c := f.buffer[f.at]; {
		case f.escaping:
			f.escaping = false
		case f.quoted:
			f.escaping, f.quoted = c == '\\', c != '"'
		case c == '"':
			f.quoted = true
		case c == '{' || c == '[':
			f.depth++
		case c == '}' || c == ']':
			if f.depth--; f.depth <= 0 {
				f.depth = 0
				f.at++
				return f.at
			}
		}
	}
	return 0
}

// more reads on. What is left of the buffer moves to its beginning.
func (f *frames) more() error {
	if len(f.buffer) > largest {
		return fmt.Errorf("reading an event of a watch: it has more than %d bytes", largest)
	}
	if len(f.buffer) == cap(f.filled) {
		f.filled = make([]byte, max(firstBuffer, 2*cap(f.filled)))
	}
	held := copy(f.filled[:cap(f.filled)], f.buffer)
	n, err := f.from.Read(f.filled[held:cap(f.filled)])
	f.buffer = f.filled[:held+n]
	if n > 0 {
		return nil
	}
	if err == io.EOF && f.depth > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close ends the stream.
func (f *frames) Close() error { return f.from.Close() }

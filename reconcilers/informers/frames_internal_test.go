package informers

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll reads the frames as the decoder of a stream does, with a buffer that is too short at first.
func readAll(f io.Reader, buffer int) (all []string, err error) {
	for {
		frame, into := "", make([]byte, buffer)
		for {
			n, err := f.Read(into)
			frame += string(into[:n])
			if errors.Is(err, io.ErrShortBuffer) {
				continue
			}
			if err != nil {
				return all, err
			}
			break
		}
		all = append(all, strings.TrimSpace(frame))
	}
}

func TestFrames(t *testing.T) {
	large := `{"large":"` + strings.Repeat("x", 3*firstBuffer) + `"}`
	tests := map[string]struct {
		reason, stream string
		want           []string
		err            error
	}{
		"Lines":    {"kube-apiserver sends lines", "{\"a\":1}\n{\"b\":[]}\n", []string{`{"a":1}`, `{"b":[]}`}, io.EOF},
		"Together": {"nothing need stand between them", `{"a":1}{"b":2}`, []string{`{"a":1}`, `{"b":2}`}, io.EOF},
		"Pretty":   {"lines may be within", "{\n \"a\": {\n}\n}", []string{"{\n \"a\": {\n}\n}"}, io.EOF},
		"Strings":  {"brackets in texts do not count", `{"a":"}\"}\\"}{}`, []string{`{"a":"}\"}\\"}`, `{}`}, io.EOF},
		"Large":    {"it may be larger than any buffer", large + large, []string{large, large}, io.EOF},
		"Cut":      {"the end came too early", `{"a":1}{"b":`, []string{`{"a":1}`}, io.ErrUnexpectedEOF},
		"Empty":    {"a watch may end without any event", "\n", nil, io.EOF},
		"Garbage":  {"what is no JSON ends somewhere, too", "]]}", []string{"]", "]", "}"}, io.EOF},
	}
	for name, tc := range tests {
		for how, slow := range map[string]func(io.Reader) io.Reader{
			"": func(r io.Reader) io.Reader { return r }, "ByBytes": iotest.OneByteReader,
			"WithEnd": iotest.DataErrReader,
		} {
			for _, buffer := range []int{5, 1 << 20} {
				t.Run(name+how, func(t *testing.T) {
					f := framer{}.NewFrameReader(io.NopCloser(slow(strings.NewReader(tc.stream))))
					got, err := readAll(f, buffer)
					if d := cmp.Diff(tc.want, got); d != "" || !errors.Is(err, tc.err) {
						t.Errorf("%s: %v: -want, +got:\n%s", tc.reason, err, d)
					}
				})
			}
		}
	}
}

// endless sends one value for ever.
type endless struct{ closed bool }

func (*endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = '['
	}
	return len(into), nil
}

func (e *endless) Close() error { e.closed = true; return nil }

func TestFramesAreBounded(t *testing.T) {
	from := &endless{}
	f := framer{}.NewFrameReader(from)
	if _, err := f.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("it must end some time: %v", err)
	}
	if err := f.Close(); err != nil || !from.closed {
		t.Errorf("the stream is to be closed: %v", err)
	}
}

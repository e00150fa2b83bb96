package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// errFull is that requests have all the memory that they may have.
var errFull = errors.New("too many large admission reviews at once")

// read gives the body of the request, within the limits, and what is to be called when it is not needed any more.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	tooLarge := &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(
		"an admission review has %d bytes at most", s.options.BodyLimit)}
	if r.ContentLength > s.options.BodyLimit {
		return nil, func() {}, tooLarge
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(s.options.ReadTimeout)); err == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	from := &metered{
		from: http.MaxBytesReader(w, r.Body, s.options.BodyLimit), held: &s.held, limit: s.options.Memory,
	}
	body, err = readAll(from, min(r.ContentLength, roomAhead))
	var beyond *http.MaxBytesError
	switch {
	case err == nil:
	case errors.As(err, &beyond):
		err = tooLarge
	case errors.Is(err, errFull):
		err = &refusal{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &refusal{http.StatusRequestTimeout, fmt.Sprintf(
			"the admission review was not sent within %s", s.options.ReadTimeout)}
	default:
		err = &refusal{http.StatusBadRequest, fmt.Sprintf("cannot read the admission review: %v", err)}
	}
	return body, from.release, err
}

// roomAhead is how much room a client gets by announcing as much: most reviews fit in.
const roomAhead = 16 << 10

// readAll is io.ReadAll with room for what was announced, which may be unknown, as negative.
func readAll(from io.Reader, announced int64) ([]byte, error) {
	body := make([]byte, 0, max(announced, 0)+bytes.MinRead)
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

// metered counts what is read, for all requests together. Only what has come counts: who announces much and sends
// nothing holds nobody up.
type metered struct {
	from  io.Reader
	held  *atomic.Int64
	limit int64
	mine  int64
}

// Read implements io.Reader.
func (m *metered) Read(into []byte) (int, error) {
	n, err := m.from.Read(into)
	m.mine += int64(n)
	if m.held.Add(int64(n)) > m.limit {
		return n, errFull
	}
	return n, err
}

func (m *metered) release() { m.held.Add(-m.mine) }

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// requestBody is the body of one request, as far as it has arrived.
type requestBody struct {
	body      []byte
	class     class
	startTime time.Time
	interrupt func() // ends a blocked read

	// The mutex of the pool guards these fields. held is the number of counted bytes.
	countedBytes int64
	isDropped    bool
}

// readBody returns the body of the request within the limits. The caller must release it, even after an error.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (*requestBody, error) {
	control := http.NewResponseController(w)
	// A deadline in the past ends a blocked read.
	interrupt := func() { _ = control.SetReadDeadline(time.Unix(1, 0)) }
	in := &requestBody{class: smallClass, startTime: time.Now(), interrupt: interrupt}
	tooLarge := &review.ResponseError{Status: http.StatusRequestEntityTooLarge, Err: fmt.Errorf(
		"an admission review has %d bytes at most", s.options.BodyLimit)}
	// An announced size that is too large is rejected before any byte is read.
	if r.ContentLength > s.options.BodyLimit {
		return in, tooLarge
	}
	// The deadline is reset after the body, because the connection can be reused. Connections without deadlines are not
	// limited.
	if err := control.SetReadDeadline(in.startTime.Add(s.options.ReadTimeout)); err == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	err := in.readAll(http.MaxBytesReader(w, r.Body, s.options.BodyLimit), r.ContentLength, &s.pool)
	// The error of an interrupted read is only a consequence of the dropped body.
	if done := s.pool.completeBody(in); done != nil {
		err = done
	}
	var beyond *http.MaxBytesError
	switch {
	case err == nil:
	case errors.As(err, &beyond):
		err = tooLarge
	case errors.Is(err, errOutOfMemory):
		err = overloadedRefusal(err)
	case errors.Is(err, errSlowBody):
		err = &review.ResponseError{Status: http.StatusRequestTimeout, Err: err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &review.ResponseError{Status: http.StatusRequestTimeout, Err: fmt.Errorf(
			"the admission review was not sent within %s", s.options.ReadTimeout)}
	default:
		err = &review.ResponseError{Status: http.StatusBadRequest,
			Err: fmt.Errorf("cannot read the admission review: %w", err)}
	}
	return in, err
}

// maxPreallocatedBytes limits the memory that is allocated only because a client announces a size. Most reviews are
// smaller.
const maxPreallocatedBytes = 16 << 10

// readAll is like io.ReadAll, with an announced size, which is negative if it is unknown. It allocates more memory only
// when bytes have arrived and were counted, so a client that announces much and sends nothing costs nothing.
func (in *requestBody) readAll(from io.Reader, announced int64, p *pool) error {
	in.body = make([]byte, 0, max(min(announced, maxPreallocatedBytes), 0)+bytes.MinRead)
	for {
		n, err := from.Read(in.body[len(in.body):cap(in.body)])
		in.body = in.body[:len(in.body)+n]
		// The operation is in the first part of a review, so deletions get their priority before the rest arrives.
		if in.class == smallClass && len(in.body) > maxSmallBodyBytes {
			if in.class = ordinaryClass; review.IsDeletion(in.body[:maxSmallBodyBytes]) {
				in.class = deletionClass
			}
		}
		full := p.addBytes(in, int64(n))
		switch {
		case full != nil:
			in.body = nil
			return full
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(in.body) == cap(in.body):
			// Doubling limits the number of copies. The announced size avoids an unused rest.
			room := 2 * cap(in.body)
			if announced > int64(len(in.body)) {
				room = min(room, int(announced)+bytes.MinRead)
			}
			in.body = append(make([]byte, 0, room), in.body...)
		}
	}
}

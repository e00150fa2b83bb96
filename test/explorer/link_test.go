package explorer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

var (
	errDead = errors.New("the process is dead")
	errLost = errors.New("connection reset by peer")
)

// link is the connection of one life of the operator to the API server.
type link struct {
	*world
	dead atomic.Bool
	next http.RoundTripper
}

// RoundTrip lets reads through, and does to writes what the course says.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case l.dead.Load():
		return nil, errDead
	case isWrite(r):
		return l.write(r)
	}
	response, err := l.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" && l.course.events() > 0 {
		response.Body = delayed(r.Context(), response.Body, l.course.events())
	}
	return response, err
}

// isWrite is true for those of handled objects and their children: nobody relies on events.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && (strings.Contains(r.URL.Path, "/"+plural) || isChild(r.URL.Path))
}

func (l *link) write(r *http.Request) (*http.Response, error) {
	number := l.reach(beforeWrite, l)
	if l.dead.Load() {
		return nil, errDead
	}
	trouble := l.strikes(number)
	switch trouble {
	case conflict:
		return answer(r, http.StatusConflict, "Conflict"), nil
	case failure:
		return answer(r, http.StatusInternalServerError, "InternalError"), nil
	case foreign:
		l.interfere()
	}
	response, err := l.next.RoundTrip(r)
	l.note(r, response)
	l.reach(afterWrite, l)
	if err == nil && (l.dead.Load() || trouble == lostAnswer) {
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func answer(r *http.Request, code int, reason string) *http.Response {
	text := fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"planned"}`, reason,
		code,
	)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{
			"Content-Type": {"application/json"},
		}, Body: io.NopCloser(bytes.NewBufferString(text)), ContentLength: int64(len(text)),
	}
}

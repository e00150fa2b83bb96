package chaos_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// wrongClock is the connection of an operator whose clock is ahead. Peers see an operator's clock only in its records
// and Leases, and the operator compares its clock only with those of others, so this shifts both in transit.
type wrongClock struct {
	next   http.RoundTripper
	offset time.Duration
}

func (w wrongClock) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.Contains(request.URL.Path, "/clusterkopfpeerings") && !strings.Contains(request.URL.Path, "/leases") {
		return w.next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", "application/json") // and not protobuf
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		_ = request.Body.Close()
		if err != nil {
			return nil, err
		}
		body = shiftTimes(body, w.offset)
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	response.Body = shiftLines(response.Body, -w.offset)
	return response, nil
}

var lastSeen = regexp.MustCompile(`"(lastseen|renewTime|acquireTime)":\s*"([^"]*)"`)

// shiftTimes moves the times of all records and Leases in a text.
func shiftTimes(text []byte, by time.Duration) []byte {
	return lastSeen.ReplaceAllFunc(text, func(field []byte) []byte {
		found := lastSeen.FindSubmatch(field)
		at, err := time.Parse(time.RFC3339Nano, string(found[2]))
		if err != nil {
			return field
		}
		return []byte(`"` + string(found[1]) + `":"` + at.Add(by).Format("2006-01-02T15:04:05.000000-07:00") + `"`)
	})
}

// shiftLines does so line by line, as they come: each event of a watch is one.
func shiftLines(body io.ReadCloser, by time.Duration) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if _, broken := writer.Write(shiftTimes(line, by)); broken != nil {
				return
			}
			if err != nil {
				_ = writer.CloseWithError(err)
				return
			}
		}
	}()
	return movedBody{reader, body}
}

type movedBody struct {
	*io.PipeReader
	original io.Closer
}

func (b movedBody) Close() error {
	_ = b.PipeReader.Close()
	return b.original.Close()
}

package transport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// kopfBackoffs holds the backoffs of Kopf.
var kopfBackoffs = []any{int64(1), int64(1), int64(2), int64(3), int64(5), int64(8), int64(13), int64(21)}

// server answers one request after another, and all further ones with its last response.
type server struct {
	responses []any
	startTime time.Time
	attempts  []float64
	bodies    []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.attempts = append(s.attempts, time.Since(s.startTime).Seconds())
	if r.Body != nil {
		data, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(data))
	}
	answer, _ := s.responses[min(len(s.attempts), len(s.responses))-1].(map[string]any)
	d := vectors.Fields(answer)
	if d["connection"] != nil {
		return nil, errors.New(d.Text("connection", ""))
	}
	response := &http.Response{StatusCode: int(number(d["status"])), Header: http.Header{}, Body: http.NoBody}
	for key := range d.Mapping("headers") {
		response.Header.Set(key, d.Mapping("headers").Text(key, ""))
	}
	if d["payload"] != nil {
		data, _ := json.Marshal(d["payload"])
		response.Body = io.NopCloser(bytes.NewReader(data))
	}
	return response, nil
}

func number(value any) float64 {
	switch n := value.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	default:
		panic(fmt.Sprintf("the harness needs a number: %v", value))
	}
}

// TestVectorsAPIRetry compares the attempts of a request with Kopf's.
func TestVectorsAPIRetry(t *testing.T) {
	vectors.Run(t, "api_retry", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "responses", "settings")
		given := vectors.Known(
			t, map[string]any(input.Mapping("settings")), "networking.error_backoffs", "networking.enforce_retry_after",
		)
		expected := vectors.Known(t, want.Value, "attempts", "status", "escalated")
		vectors.Bubble(t, func(t *testing.T) {
			s := &server{responses: input.List("responses"), startTime: time.Now()}
			send := transport.RequestRetries{
				Backoffs: backoffs(given), EnforceRetryAfter: given.Flag("networking.enforce_retry_after"),
			}.WrapRoundTrip(s.RoundTrip)
			request, _ := http.NewRequestWithContext(
				t.Context(), http.MethodPatch, "http://api/one", strings.NewReader("the patch"),
			)
			response, err := send(request)
			if err == nil {
				defer func() { _ = response.Body.Close() }()
			}
			var attempts []float64
			for _, at := range expected.List("attempts") {
				attempts = append(attempts, number(at))
			}
			if d := cmp.Diff(attempts, s.attempts); d != "" {
				t.Errorf("attempts: -want, +got:\n%s", d)
			}
			if d := cmp.Diff(strings.Repeat("the patch", len(attempts)), strings.Join(s.bodies, "")); d != "" {
				t.Errorf("every attempt sends the whole body: -want, +got:\n%s", d)
			}
			if escalated := err != nil || response.StatusCode >= 400; escalated != (expected["escalated"] != nil) {
				t.Errorf("want %v, got %v, error %v", expected, response, err)
			}
		})
	})
}

func backoffs(given vectors.Fields) (all []time.Duration) {
	list, isList := given["networking.error_backoffs"].([]any)
	switch {
	case given["networking.error_backoffs"] == nil:
		list = kopfBackoffs
	case !isList:
		list = []any{given["networking.error_backoffs"]}
	}
	for _, delay := range list {
		all = append(all, time.Duration(number(delay)*float64(time.Second)))
	}
	return all
}

package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// large returns a review of about 100 KB that takes more than a megabyte once it is decoded.
func large(operation string) string {
	return `{"request":{"operation":"` + operation + `","object":[1` + strings.Repeat(",1", 50_000) + `]}}`
}

// countingReviewer answers reviews of creations when the channel is closed, and all others at once.
type countingReviewer struct {
	mu                          sync.Mutex
	activeCount, maxActiveCount int // the creations in progress, now and at most
	release                     chan struct{}
}

func (h *countingReviewer) Review(_ context.Context, request review.EndpointRequest) (review.Response, error) {
	if !bytes.Contains(request.Body, []byte("CREATE")) || len(request.Body) < 1000 {
		return review.Response{}, nil
	}
	h.mu.Lock()
	h.activeCount++
	h.maxActiveCount = max(h.maxActiveCount, h.activeCount)
	h.mu.Unlock()
	<-h.release
	h.mu.Lock()
	h.activeCount--
	h.mu.Unlock()
	return review.Response{}, nil
}

// newPooledServer returns a server with memory for three large reviews, and for the bodies of 26.
func newPooledServer(t *testing.T, reviewer server.ReviewFunc) *server.Server {
	t.Helper()
	s, err := server.New(server.Options{
		Reviewer: reviewer, MemoryLimit: 6 << 20, Endpoints: []server.Endpoint{{Path: "v", Handler: "v"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sendDirectly sends a review without a connection and returns the answer with its delay.
func sendDirectly(by http.Handler, body io.Reader) (status int, header http.Header, after time.Duration) {
	began, answer := time.Now(), httptest.NewRecorder()
	by.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v", body))
	return answer.Code, answer.Header(), time.Since(began)
}

// heaviest returns a review that weighs a little less than all of the memory.
func heaviest(operation string) string {
	sized := func(steps int) string {
		return `{"request":{"operation":"` + operation + `","object":[1` + strings.Repeat(",1", 500*steps) + `]}}`
	}
	tooHeavy := func(steps int) bool { return review.EstimateMemory([]byte(sized(steps))) > 6<<20 }
	return sized(sort.Search(1000, tooHeavy) - 1)
}

// TestHeavyDeletionLeavesTheReserve shows that a deletion does not use the memory that is reserved for small reviews.
func TestHeavyDeletionLeavesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, done := make(chan struct{}), make(chan int)
		s := newPooledServer(t, deletionBlocker(release))
		go func() {
			status, _, _ := sendDirectly(s, strings.NewReader(heaviest("DELETE")))
			done <- status
		}()
		synctest.Wait()
		small := `{"request":{"operation":"UPDATE","object":[1` + strings.Repeat(",1", 9000) + `]}}`
		if status, _, after := sendDirectly(s, strings.NewReader(small)); status != http.StatusOK || after > 0 {
			t.Errorf("a small review must not wait for a heavy deletion: got %d after %s", status, after)
		}
		close(release)
		if status := <-done; status != http.StatusOK {
			t.Errorf("the heavy deletion must be answered: got %d", status)
		}
	})
}

// deletionBlocker answers reviews of deletions when the channel is closed, and all others at once.
type deletionBlocker chan struct{}

func (b deletionBlocker) Review(_ context.Context, request review.EndpointRequest) (review.Response, error) {
	if review.IsDeletion(request.Body) {
		<-b
	}
	return review.Response{}, nil
}

// TestOneHeavyReviewLeavesTheReserve shows that a review that is larger than the share of its class does not use the
// memory that is reserved for other classes.
func TestOneHeavyReviewLeavesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		double := &countingReviewer{release: make(chan struct{})}
		s := newPooledServer(t, double)
		done := make(chan int)
		go func() {
			status, _, _ := sendDirectly(s, strings.NewReader(heaviest("CREATE")))
			done <- status
		}()
		synctest.Wait()
		for _, body := range []string{
			`{"request":{"operation":"UPDATE","object":{}}}`,
			`{"request":{"operation":"DELETE","object":[1` + strings.Repeat(",1", 9000) + `]}}`,
		} {
			if status, _, _ := sendDirectly(s, strings.NewReader(body)); status != http.StatusOK {
				t.Errorf("%.40s: got %d, want 200 beside a heavy review", body, status)
			}
		}
		close(double.release)
		if status := <-done; status != http.StatusOK {
			t.Errorf("the heavy review: got %d", status)
		}
	})
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		double := &countingReviewer{release: make(chan struct{})}
		s := newPooledServer(t, double)
		var mu sync.Mutex
		statuses := map[int]int{}
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				status, header, after := sendDirectly(s, strings.NewReader(large("CREATE")))
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
				later := after > time.Second || header.Get("Retry-After") != "1"
				if status == http.StatusServiceUnavailable && later {
					t.Errorf("a review must be refused within a second, with a time to retry: got %s, %v",
						after, header)
				}
			})
		}
		synctest.Wait()
		for name, body := range map[string]string{"small": `{"request":{}}`, "deletion": large("DELETE")} {
			if status, _, after := sendDirectly(s, strings.NewReader(body)); status != http.StatusOK || after > 0 {
				t.Errorf("%s reviews must not wait for large ones: got %d after %s", name, status, after)
			}
		}
		time.Sleep(time.Second + time.Millisecond)
		close(double.release)
		all.Wait()
		if double.maxActiveCount != 3 || statuses[http.StatusOK] != 3 || statuses[http.StatusServiceUnavailable] != 61 {
			t.Errorf("want 3 of 64 reviews answered and all others refused: got %d at once, %v", double.maxActiveCount,
				statuses)
		}
		if status, _, _ := sendDirectly(s, strings.NewReader(large("CREATE"))); status != http.StatusOK {
			t.Errorf("the next review must be answered: got %d", status)
		}
	})
}

// TestWaiting shows that waiting reviews are answered as soon as earlier ones end.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		double := &countingReviewer{release: make(chan struct{})}
		s := newPooledServer(t, double)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if status, _, _ := sendDirectly(s, strings.NewReader(large("CREATE"))); status != http.StatusOK {
					t.Errorf("a review must wait for earlier ones: got %d", status)
				}
			})
		}
		synctest.Wait()
		close(double.release)
		all.Wait()
		if double.maxActiveCount != 3 {
			t.Errorf("got %d at once, want 3", double.maxActiveCount)
		}
	})
}

// TestSlowClientsHoldNoPlace shows that clients that send a part of their reviews and wait do not block others.
func TestSlowClientsHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPooledServer(t, &countingReviewer{})
		body := large("UPDATE")
		var slow []*io.PipeWriter
		var all sync.WaitGroup
		for range 40 {
			from, into := io.Pipe()
			slow = append(slow, into)
			all.Go(func() { sendDirectly(s, from) })
			all.Go(func() { _, _ = into.Write([]byte(body[:len(body)-1])) })
		}
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		for range 3 {
			if status, _, after := sendDirectly(s, strings.NewReader(body)); status != http.StatusOK || after > 0 {
				t.Errorf("a complete review must be answered: got %d after %s", status, after)
			}
		}
		for _, into := range slow {
			_ = into.CloseWithError(io.ErrUnexpectedEOF)
		}
		all.Wait()
	})
}

// TestTooHeavy shows that a review that would take more than all memory is marked as too heavy.
func TestTooHeavy(t *testing.T) {
	double := &reviewer{}
	s := newPooledServer(t, double)
	body := `{"request":{"object":[{"a":1}` + strings.Repeat(`,{"a":1}`, 20_000) + `]}}`
	_, _, _ = sendDirectly(s, strings.NewReader(body))
	_, _, _ = sendDirectly(s, strings.NewReader(`{"request":{"object":{}}}`))
	if len(double.requests) != 2 || !double.requests[0].ExceedsMemory || double.requests[1].ExceedsMemory {
		t.Errorf("a review of %d bytes must be too heavy: got %d reviews", len(body), len(double.requests))
	}
}

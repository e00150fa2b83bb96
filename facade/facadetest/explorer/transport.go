package explorer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// exchange is a request of the operator in progress.
type exchange struct {
	historyText  string // its text in a history; empty if it is not shown
	place        string // of a write, as named in courses
	isAnswerLost bool   // whether its answer is lost
}

// Context keys of a request: its exchange, and the attempt that sends it.
type (
	exchangeKey struct{}
	attemptKey  struct{}
)

// RoundTrip sends a request of this life. The operator's client uses it as its transport.
func (l *Life) RoundTrip(r *http.Request) (*http.Response, error) {
	<-l.started
	e := &exchange{}
	response, err := l.connection.RoundTrip(r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
	switch {
	case e.historyText == "":
	case err != nil:
		l.environment.noteLine(l, fmt.Sprintf("%s: %v", e.historyText, err))
	default:
		l.environment.noteLine(l, fmt.Sprintf("%s: %d", e.historyText, response.StatusCode))
	}
	// Watches are delayed here, after the server has accepted them.
	if by := l.environment.run.course.eventDelay(); by > 0 && err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = delayedBody(r.Context(), response.Body, by)
	}
	return response, err
}

// beforeRequest runs before a request is sent. It reaches the point before the request, and disturbs a write if the
// course says so.
func (l *Life) beforeRequest(ctx context.Context, r memapi.Request) error {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	if e == nil || isOperatorResource(r.Resource.Plural) {
		return nil
	}
	subject := subjectOf(r)
	if isRead(r) {
		if ctx.Value(attemptKey{}) == nil || l.environment.isDead(l) { // the read of an informer or of the engine
			return nil
		}
		e.historyText = r.Verb + " " + subject
		place := "before-" + l.environment.nextPlace("read", courseLabel(subject))
		_ = l.reachPoint(point{place: place}) // a dead life may still read
		return nil
	}
	e.historyText, e.place = shownAs(r, subject), l.environment.nextPlace("write", courseLabel(subject))
	// A write shows that the scenario is not idle yet.
	l.environment.noteWrite()
	here := write{e.place, canConflict(r)}
	if err := l.reachPoint(point{"before-" + e.place, &here}); err != nil {
		return err
	}
	return l.disturbWrite(e, r)
}

// afterRequest runs when a write has taken effect, before its answer is delivered.
func (l *Life) afterRequest(ctx context.Context, r memapi.Request) error {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	if e == nil || e.place == "" {
		return nil
	}
	l.environment.noteFinalizers(r)
	if err := l.reachPoint(point{place: "after-" + e.place}); err != nil {
		return err
	}
	if e.isAnswerLost {
		return errConnectionReset
	}
	return nil
}

// disturbWrite applies the trouble of the course to a write.
func (l *Life) disturbWrite(e *exchange, r memapi.Request) error {
	resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Plural}
	switch l.environment.troubleAt(l, e.place) {
	case conflict:
		// A server-side apply does not fail with a conflict of versions.
		if canConflict(r) {
			return apierrors.NewConflict(resource, r.Name, errInjected)
		}
	case failure:
		return apierrors.NewInternalError(errInjected)
	case lostAnswer:
		e.isAnswerLost = true
	case foreignChange:
		l.environment.editAsOther(r)
	}
	return nil
}

// canConflict reports whether the server can refuse the request because of a stale resource version.
func canConflict(r memapi.Request) bool {
	return r.Verb == "update" || r.Verb == "patch" && r.ContentType != string(types.ApplyYAMLPatchType)
}

// maxEventDelay is the maximum delay of an event if no later ones arrive.
const maxEventDelay = 3 * time.Second

// delayedBody returns the body of a watch that delays each line until the given number of later lines has arrived, or
// the time limit has passed.
func delayedBody(ctx context.Context, body io.ReadCloser, by int) io.ReadCloser {
	out, in := io.Pipe()
	// The buffer lets the reader continue while lines are held back.
	lines := make(chan []byte, 1000)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(body)
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	go func() { _ = in.CloseWithError(forwardDelayed(ctx, lines, in, by)) }()
	return delayedWatchBody{Reader: out, closers: []io.Closer{body, out}}
}

// heldLine is a delayed line of a watch.
type heldLine struct {
	text []byte
	due  time.Time
}

// forwardDelayed forwards lines with the delay. At the end of the watch, delayed lines are lost, as with a broken
// connection.
func forwardDelayed(ctx context.Context, lines <-chan []byte, out io.Writer, by int) error {
	var waiting []heldLine
	for {
		var due <-chan time.Time
		if len(waiting) > 0 {
			due = time.After(time.Until(waiting[0].due))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				return io.EOF
			}
			// Each line is delayed from its own arrival.
			waiting = append(waiting, heldLine{line, time.Now().Add(maxEventDelay)})
			// Enough later lines must be waiting.
			if len(waiting) <= by {
				continue
			}
		case <-due:
		}
		if _, err := out.Write(waiting[0].text); err != nil {
			return err
		}
		waiting = waiting[1:]
	}
}

// delayedWatchBody is the delayed body. Closing it also closes the original one.
type delayedWatchBody struct {
	io.Reader
	closers []io.Closer
}

// Close closes both bodies.
func (b delayedWatchBody) Close() error {
	for _, one := range b.closers {
		_ = one.Close()
	}
	return nil
}

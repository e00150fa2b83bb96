package inspection_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// consoleFixture is an operator with one object, and its console on a server with the read timeout of an operator.
type consoleFixture struct {
	t        *testing.T
	journal  *journal.Journal
	operator *journaltest.FakeOperator
	url      string
	server   *httptest.Server
}

func newConsoleFixture(t *testing.T) *consoleFixture {
	t.Helper()
	w := &consoleFixture{t: t, journal: journal.New(journal.RetentionLimits{}), operator: &journaltest.FakeOperator{}}
	w.operator.SetState(journal.OperatorState{
		Operator: "test", Running: true,
		Kinds: []journal.ServedKind{journaltest.ServedKind(w.journal, widgets, create)},
	})
	w.journal.SetLive(w.operator)
	w.startStory("one").RecordEvaluation("create", journaltest.EvaluationVerdict{Handler: create})
	peers := func() []peering.Peer { return []peering.Peer{{Identity: "other", Priority: 7}} }
	w.server = httptest.NewUnstartedServer(inspection.NewConsole(w.journal, peers))
	w.server.Config.ReadTimeout = 500 * time.Millisecond
	w.server.Start()
	t.Cleanup(w.server.Close)
	w.url = w.server.URL
	return w
}

func (w *consoleFixture) startStory(name string) journaltest.Story {
	return journaltest.StartStory(w.journal, widgets, "default", name)
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   io.Reader
}

func (w *consoleFixture) sendRequest(ctx context.Context, method, path string) answer {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return answer{response.StatusCode, response.Header, response.Body}
}

func (w *consoleFixture) getPage(path string) (answer, string) {
	w.t.Helper()
	response := w.sendRequest(w.t.Context(), http.MethodGet, path)
	body, err := io.ReadAll(response.body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response, string(body)
}

// TestPage shows that the page and its parts have a policy that forbids foreign resources and inline scripts.
func TestPage(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	for path, want := range map[string]string{
		"/console":           "text/html; charset=utf-8",
		"/console/style.css": "text/css; charset=utf-8",
		"/console/script.js": "text/javascript; charset=utf-8",
	} {
		response, body := w.getPage(path)
		got := response.header.Get("Content-Type")
		if response.status != http.StatusOK || got != want || body == "" {
			t.Errorf("%s: %d, %q, %d bytes", path, response.status, got, len(body))
		}
		policy := response.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		for _, foreign := range []string{"http://", "https://", "//cdn", "innerHTML", "eval(", "style=", "onclick"} {
			if strings.Contains(body, foreign) {
				t.Errorf("%s contains %q: everything must be local, and not made from text or inline", path, foreign)
			}
		}
	}
}

// TestRefusals shows that only reading is possible, and only the page and its parts.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	for request, want := range map[string]int{
		"POST /console":            http.StatusMethodNotAllowed,
		"DELETE /console/object":   http.StatusMethodNotAllowed,
		"POST /console/events":     http.StatusMethodNotAllowed,
		"HEAD /console/events":     http.StatusMethodNotAllowed,
		"HEAD /console":            http.StatusOK,
		"GET /console/":            http.StatusNotFound,
		"GET /console/console.go":  http.StatusNotFound,
		"GET /console/object":      http.StatusNotFound,
		"GET /console/object?x=%z": http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := w.sendRequest(t.Context(), method, path).status; got != want {
			t.Errorf("%s: want %d, got %d", request, want, got)
		}
	}
}

// TestObject shows that the explanation of an object is that of the journal, with sentences for its history.
func TestObject(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	_, body := w.getPage("/console/object?kind=Widget.example.org&namespace=default&name=one")
	var got struct {
		Kind     string
		Handlers []struct{ Says string }
		History  []struct{ Says string }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if got.Kind != "Widget.example.org" || len(got.Handlers) != 1 || len(got.History) != 1 ||
		got.History[0].Says != "evaluated a creation; selected provision" {
		t.Errorf("the answer is %+v", got)
	}
	if response, body := w.getPage("/console/object?kind=gadget&name=x"); response.status != http.StatusNotFound ||
		!strings.Contains(body, `does not serve kind "gadget"`) {
		t.Errorf("another kind: %d, %s", response.status, body)
	}
}

// eventStream is a page that receives events.
type eventStream struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

func (w *consoleFixture) openStream(query string) *eventStream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	response := w.sendRequest(ctx, http.MethodGet, "/console/events"+query)
	if got := response.header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		w.t.Fatalf("the stream is %q, %d", got, response.status)
	}
	lines := bufio.NewScanner(response.body)
	lines.Buffer(nil, 1<<20)
	return &eventStream{w.t, lines, cancel}
}

// next returns the data of the next event, which must have this name.
func (l *eventStream) next(event string) string {
	l.t.Helper()
	var got []string
	for l.lines.Scan() && l.lines.Text() != "" {
		got = append(got, l.lines.Text())
	}
	if len(got) != 2 || got[0] != "event: "+event || !strings.HasPrefix(got[1], "data: ") {
		l.t.Fatalf("want an event %q, got %q, %v", event, got, l.lines.Err())
	}
	return strings.TrimPrefix(got[1], "data: ")
}

func (l *eventStream) requireEvent(event string, parts ...string) {
	l.t.Helper()
	data := l.next(event)
	for _, part := range parts {
		if !strings.Contains(data, part) {
			l.t.Errorf("the event %s does not contain %s: %s", event, part, data)
		}
	}
}

// TestStream shows that everything is sent at first, and then only changes, for longer than the read timeout of the
// server.
func TestStream(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	l := w.openStream("")
	l.requireEvent("operator", `"operator":"test"`, `"running":true`, `"identity":"other"`)
	l.requireEvent("objects", `"name":"one","state":"running"`)
	w.startStory("two").RecordEvent("ADDED")
	l.requireEvent("objects", `"name":"two","state":"seen"`, `"known":2`)
	w.operator.SetState(journal.OperatorState{Operator: "test", Running: true, Paused: true})
	l.requireEvent("operator", `"paused":true`)
	w.startStory("two").RecordEvent("DELETED")
	l.requireEvent("objects", `"state":"gone"`)
}

// TestStreamOfSome shows that a page with a query receives the matching objects, and the counts of all.
func TestStreamOfSome(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	w.startStory("two").RecordEvent("ADDED")
	l := w.openStream("?state=seen&kind=Widget.example.org&text=TW")
	l.requireEvent("operator")
	if data := l.next("objects"); strings.Contains(data, `"name":"one"`) || !strings.Contains(data, `"name":"two"`) ||
		!strings.Contains(data, `"matching":1`) || !strings.Contains(data, `"known":2`) {
		t.Errorf("the objects are %s", data)
	}
}

// TestTooManyStreams shows that the number of open pages is limited, and that a page that closes makes room for another
// one.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	var all []*eventStream
	for range 16 {
		l := w.openStream("")
		l.requireEvent("operator")
		all = append(all, l)
	}
	response, body := w.getPage("/console/events")
	if response.status != http.StatusServiceUnavailable || !strings.Contains(body, "16 pages are open") {
		t.Errorf("one page too many: %d, %s", response.status, body)
	}
	all[3].cancel()
	for range 1000 {
		if w.sendRequest(t.Context(), http.MethodHead, "/console").status != http.StatusOK {
			t.Fatal("the page itself is not served while all streams are taken")
		}
		ctx, cancel := context.WithCancel(t.Context())
		status := w.sendRequest(ctx, http.MethodGet, "/console/events").status
		cancel()
		if status == http.StatusOK {
			return
		}
	}
	t.Error("there is no room although a page was closed")
}

// TestStreamEnds shows that a stream ends at once with its server.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	w := newConsoleFixture(t)
	l := w.openStream("")
	l.requireEvent("operator")
	l.requireEvent("objects")
	w.server.CloseClientConnections()
	if l.lines.Scan() {
		t.Errorf("received %q after the end", l.lines.Text())
	}
}

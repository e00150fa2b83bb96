package traces

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var update = flag.Bool("update", false, "write the golden files of the stories")

// latency is the time of a request to the server, and that of its answer back. The watches of the operator show a write
// in between, so the order of the two does not depend on chance.
const latency = 5 * time.Millisecond

// Story is one scenario in virtual time.
type Story struct {
	// T is the test in the bubble of testing/synctest.
	T *testing.T
	// Server is the API server. It has the kinds of memapi.BuiltIn.
	Server *memapi.Server
	// Connection leads from the operators to the server. Its hooks can disturb requests.
	Connection *memapi.Connection

	mu         sync.Mutex
	steps      []*step
	runners    []*facadetest.Runner
	identities identities
}

// step is one stimulus, with what follows.
type step struct {
	title     string
	startedAt time.Time
	lines     []*line
}

// line is one line of the trace: a text, or a request with its body.
type line struct {
	at      time.Time
	rank    rank
	text    string
	request *http.Request
	body    []byte
	code    int
	version string // the resourceVersion in the answer
}

// rank orders what happens at one moment.
type rank int

const (
	rankUser rank = iota
	rankHandlerCall
	rankOperator
	rankNote
)

// Run plays a story, stops its operators, and compares the trace with testdata/<name>.golden. The promise says what the
// trace shows.
func Run(t *testing.T, name, promise string, play func(s *Story)) {
	t.Helper()
	if *update {
		t.Setenv("FACADETEST_UPDATE", "1")
	}
	var text string
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		s := &Story{T: t, Server: server, Connection: server.Connect()}
		s.identities = identities{map[string]string{}, map[string][]string{}}
		play(s)
		s.Stop()
		text = s.trace()
	})
	facadetest.Golden(t, "testdata/"+name+".golden", "# "+promise+"\n"+text)
}

// Step begins a step, does something, and lets the rest of the time pass. The times of its trace begin here.
func (s *Story) Step(title string, takes time.Duration, do func()) {
	s.T.Helper()
	synctest.Wait() // what happens at this moment belongs to the former step
	began := time.Now()
	s.mu.Lock()
	s.steps = append(s.steps, &step{title: title, startedAt: began})
	s.mu.Unlock()
	do()
	time.Sleep(time.Until(began.Add(takes)))
}

// Start starts an operator in a step of about a minute.
func (s *Story) Start(op *kopf.Operator) {
	s.T.Helper()
	s.Step("An operator starts.", 61*time.Second, func() { // it looks for peers each minute
		config := memapi.Config(roundTrip(s.fromOperator))
		s.runners = append(s.runners, facadetest.Start(s.T, op, facadetest.Against(config)))
	})
}

// Stop asks the operator that was started last to stop, in a step of 10 seconds, unless it has ended.
func (s *Story) Stop() {
	s.T.Helper()
	last := s.runners[len(s.runners)-1]
	select {
	case <-last.Ended():
		return
	default:
	}
	s.Step("The operator exits.", 10*time.Second, func() {
		if err := last.Stop(); err != nil {
			s.T.Error(err)
		}
	})
}

// Send sends a request of a user, in no time. Patches are merge-patches.
func (s *Story) Send(method, path, body string) {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), method, "http://mem"+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := s.record(s.Server, r, rankUser, 0)
	if err != nil {
		s.T.Error(err)
		return
	}
	_ = response.Body.Close()
}

// Note adds a text to the trace.
func (s *Story) Note(text string) { s.add(&line{at: time.Now(), rank: rankNote, text: text}) }

func (s *Story) add(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.steps[len(s.steps)-1]
	last.lines = append(last.lines, l)
}

// fromOperator records a request of an operator.
func (s *Story) fromOperator(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/version" { // facadetest looks for the server in memory
		return s.Connection.RoundTrip(r)
	}
	return s.record(s.Connection, r, rankOperator, latency)
}

func (s *Story) record(to http.RoundTripper, r *http.Request, by rank, delay time.Duration) (*http.Response, error) {
	sent := &line{at: time.Now(), rank: by, request: r}
	if r.Body != nil {
		var err error
		if sent.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent.body))
		sent.body = processes.ReplaceAll(sent.body, []byte("<this process>")) // before bytes are counted
	}
	s.add(sent)
	time.Sleep(delay)
	response, err := to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer time.Sleep(delay)
	var answer []byte
	if !r.URL.Query().Has("watch") { // which has no end
		if answer, err = io.ReadAll(response.Body); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(answer))
	}
	s.mu.Lock()
	sent.code, sent.version = response.StatusCode, s.identities.add(r.URL.Path, answer)
	s.mu.Unlock()
	return response, nil
}

type roundTrip func(r *http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

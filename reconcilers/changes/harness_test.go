package changes_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

const (
	prefix            = "op.example.org"
	finalizer         = prefix + "/finalizer"
	boundToAnnotation = prefix + "/handled-uid"
	handledAnnotation = prefix + "/last-handled-configuration"
	interimAnnotation = prefix + "/handling-configuration"
	failedAnnotation  = prefix + "/failed-handlers"
)

// harness is one API server with the calls and log lines of the processes that use it.
type harness struct {
	*server
	t       *testing.T
	started time.Time

	mu       sync.Mutex
	journal  []string // calls of handlers, such as "0s create a"
	logLines []string
}

// scenario is a test case; its reason states the expected behaviour.
type scenario struct {
	reason string
	play   func(w *harness)
}

// run runs each scenario on virtual time with a server of its own, on which the object already exists.
func run(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the reason of this case:", s.reason)
				}
			})
			synctest.Test(t, func(t *testing.T) { s.play(newHarness(t)) })
		})
	}
}

func newHarness(t *testing.T) *harness {
	w := &harness{server: newServer(), t: t, started: time.Now()}
	w.create(object())
	return w
}

func (w *harness) log() logr.Logger {
	return logkeys.Unique(w.t, funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logLines = append(w.logLines, args)
	}, funcr.Options{}))
}

// hasLogged reports whether any log line contains all of the texts.
func (w *harness) hasLogged(texts ...string) bool { return len(w.linesWith(texts...)) > 0 }

// linesWith returns the log lines that contain all of the texts.
func (w *harness) linesWith(texts ...string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.logLines {
		found := true
		for _, text := range texts {
			found = found && strings.Contains(line, text)
		}
		if found {
			lines = append(lines, line)
		}
	}
	return lines
}

func (w *harness) called(c *cause.Cause, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprintf("%s %s %s", time.Since(w.started), c.Reason, id))
}

// calls returns the journal and clears it.
func (w *harness) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	journal := w.journal
	w.journal = nil
	return journal
}

// wantCalls compares the calls since the last check.
func (w *harness) wantCalls(when string, want ...string) {
	w.t.Helper()
	w.want(when+": calls", want, w.calls())
}

// wantWrites compares the writes since the last check.
func (w *harness) wantWrites(when string, want ...string) {
	w.t.Helper()
	w.want(when+": writes", want, w.drainWrites())
}

func (w *harness) want(what string, want, got any) {
	w.t.Helper()
	if list, ok := want.([]string); ok && list == nil {
		want = []string(nil)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: -want, +got:\n%s", what, diff)
	}
}

// wantAt compares the value at a path of the object.
func (w *harness) wantAt(when string, want any, path ...string) {
	w.t.Helper()
	w.want(when+": "+strings.Join(path, "."), want, w.at(path...))
}

// annotation returns the decoded JSON of an annotation, or nil if it does not exist.
func (w *harness) annotation(name string) any {
	text, ok := w.at("metadata", "annotations", name).(string)
	if !ok {
		return nil
	}
	return decoded([]byte(text))
}

// record returns a key of the record of a handler, or nil if the record or the key does not exist.
func (w *harness) record(id, key string) any { return at(w.annotation(prefix+"/"+id), key) }

// wantHandled compares a field of the spec in the last-handled configuration.
func (w *harness) wantHandled(when string, want any) {
	w.t.Helper()
	w.want(when+": handled last", want, at(w.annotation(handledAnnotation), "spec", "field"))
}

// wantClean checks that only the last-handled configuration, its binding and the list of failed handlers are left of
// the annotations of the engine.
func (w *harness) wantClean(when string) {
	w.t.Helper()
	annotations, _ := w.at("metadata", "annotations").(map[string]any)
	for key := range annotations {
		switch key {
		case handledAnnotation, boundToAnnotation, failedAnnotation, prefix + "/kopf-managed":
		default:
			if strings.HasPrefix(key, prefix+"/") {
				w.t.Errorf("%s: %s is left on the object: %v", when, key, annotations[key])
			}
		}
	}
}

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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

const (
	prefix    = "op.example.org"
	finalizer = prefix + "/finalizer"
	boundTo   = prefix + "/handled-uid"
	handled   = prefix + "/last-handled-configuration"
	interim   = prefix + "/handling-configuration"
)

// world is one API server, and what the processes that live in it have done.
type world struct {
	*server
	t       *testing.T
	started time.Time

	mu      sync.Mutex
	journal []string // the calls of handlers, such as "0s create a"
	logged  []string
}

// scenario is one story with its moral.
type scenario struct {
	reason string
	play   func(w *world)
}

// run plays each scenario on virtual time, in a world of its own where the object is created already.
func run(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the reason of this case:", s.reason)
				}
			})
			synctest.Test(t, func(t *testing.T) { s.play(newWorld(t)) })
		})
	}
}

func newWorld(t *testing.T) *world {
	w := &world{server: newServer(), t: t, started: time.Now()}
	w.create(object())
	return w
}

func (w *world) log() logr.Logger {
	return logkeys.Unique(w.t, funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logged = append(w.logged, args)
	}, funcr.Options{}))
}

// hasLogged tells whether any line has all of the texts.
func (w *world) hasLogged(texts ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.logged {
		found := true
		for _, text := range texts {
			found = found && strings.Contains(line, text)
		}
		if found {
			return true
		}
	}
	return false
}

func (w *world) called(c *cause.Cause, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, fmt.Sprintf("%s %s %s", time.Since(w.started), c.Reason, id))
}

// calls gives the journal, and begins a new one.
func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	journal := w.journal
	w.journal = nil
	return journal
}

// wantCalls compares the calls since it was asked last.
func (w *world) wantCalls(when string, want ...string) {
	w.t.Helper()
	w.want(when+": calls", want, w.calls())
}

// wantWrites compares the requests since it was asked last.
func (w *world) wantWrites(when string, want ...string) {
	w.t.Helper()
	w.want(when+": writes", want, w.drainWrites())
}

func (w *world) want(what string, want, got any) {
	w.t.Helper()
	if list, ok := want.([]string); ok && list == nil {
		want = []string(nil)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: -want, +got:\n%s", what, diff)
	}
}

// wantAt compares a place on the object.
func (w *world) wantAt(when string, want any, path ...string) {
	w.t.Helper()
	w.want(when+": "+strings.Join(path, "."), want, w.at(path...))
}

// annotation is the JSON of an annotation; nil if there is none.
func (w *world) annotation(name string) any {
	text, ok := w.at("metadata", "annotations", name).(string)
	if !ok {
		return nil
	}
	return decoded([]byte(text))
}

// record is a key of a handler's record; nil if there is no record, or no such key in it.
func (w *world) record(id, key string) any { return at(w.annotation(prefix+"/"+id), key) }

// wantHandled compares a field of the spec as it was last handled.
func (w *world) wantHandled(when string, want any) {
	w.t.Helper()
	w.want(when+": handled last", want, at(w.annotation(handled), "spec", "field"))
}

// wantClean is the state after a cause: nothing but what was handled last, and whose it is.
func (w *world) wantClean(when string) {
	w.t.Helper()
	annotations, _ := w.at("metadata", "annotations").(map[string]any)
	for key := range annotations {
		switch key {
		case handled, boundTo, prefix + "/kopf-managed":
		default:
			if strings.HasPrefix(key, prefix+"/") {
				w.t.Errorf("%s: %s is left on the object: %v", when, key, annotations[key])
			}
		}
	}
}

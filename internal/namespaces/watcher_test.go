package namespaces_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWatcher shows that the served namespaces follow the cluster, and that a deleted one is served for a while.
func TestWatcher(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *watcherFixture)
	}{
		"Appears": {
			"a new namespace that matches a pattern is served at once", func(w *watcherFixture) {
				w.createNamespace("a2")
				w.createNamespace("b")
				w.requireServed("after two creations", "a1 a2")
			},
		},
		"Changes": {
			"a change of labels has no effect", func(w *watcherFixture) {
				w.patch("a1", `{"metadata":{"labels":{"x":"y"}}}`)
				w.requireServed("after the change")
			},
		},
		"Vanishes": {
			"a deleted namespace is served for five more seconds, as events of its objects may follow",
			func(w *watcherFixture) {
				w.createNamespace("a2")
				w.requireServed("after a creation", "a1 a2")
				w.deleteNamespace("a1")
				time.Sleep(4 * time.Second)
				w.requireServed("four seconds after the deletion", "a1 a2")
				time.Sleep(2 * time.Second)
				w.requireServed("six seconds after the deletion", "a2")
			},
		},
		"ComesBack": {
			"a namespace that is deleted and created again remains served", func(w *watcherFixture) {
				w.deleteNamespace("a1")
				time.Sleep(2 * time.Second)
				w.createNamespace("a1")
				time.Sleep(time.Minute)
				w.requireServed("a minute after the creation", "a1", "a1")
				w.deleteNamespace("a1")
				time.Sleep(time.Minute)
				w.requireServed("a minute after another deletion", "a1", "")
			},
		},
		"Ends": {
			"a terminating namespace is served while it has content", func(w *watcherFixture) {
				w.patch("a1", `{"metadata":{"finalizers":["kubernetes.io/content"]}}`)
				w.deleteNamespace("a1")
				w.setContentRemaining("a1", "True")
				time.Sleep(time.Hour)
				w.requireServed("with content")
				w.setContentRemaining("a1", "False")
				time.Sleep(time.Minute)
				w.requireServed("without content", "a1", "")
			},
		},
		"VanishesUnseen": {
			"a namespace that was deleted without a watch is removed by the next list", func(w *watcherFixture) {
				w.watcherErr.set(unavailable(), false)
				time.Sleep(20 * time.Minute) // longer than any watch
				w.deleteNamespace("a1")
				w.server.Compact()
				w.watcherErr.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.requireServed("after the next list", "a1", "")
			},
		},
		"Exit": {
			"nothing is reported after the end, not even a pending removal", func(w *watcherFixture) {
				w.deleteNamespace("a1")
				w.requireServed("before the end", "a1")
				w.stop()
				time.Sleep(time.Minute)
				w.requireServed("a minute after the end")
				w.requireLogLines("the end is not logged as a failure")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatcherFixture(t, "a*")
				w.createNamespace("b0")
				w.createNamespace("a1")
				w.run()
				w.requireServed("the matching ones in one call", "a1")
				tc.play(w)
			})
		})
	}
}

// TestWatcherIsRefused shows that named namespaces are served without the right to list, and how failures are retried
// and logged.
func TestWatcherIsRefused(t *testing.T) {
	const refused, lost, unlisted = "Not allowed to list", "Cannot watch", "Cannot list"
	tests := map[string]struct {
		reason string
		before error // the initial error of lists
		play   func(w *watcherFixture)
	}{
		"Forbidden": {
			"named namespaces are served without a list, and patterns as soon as lists succeed", forbidden(),
			func(w *watcherFixture) {
				w.requireServed("with forbidden lists", "c")
				time.Sleep(9 * time.Minute)
				w.requireServed("after nine minutes of retries", "c")
				w.requireLogLines("one line for all retries", refused)
				w.watcherErr.set(nil, false)
				time.Sleep(5 * time.Minute)
				w.requireServed("after a list succeeded", "a1 c")
				w.createNamespace("a2")
				w.requireServed("after a creation", "a1 a2 c")
			},
		},
		"OutOfOrder": {
			"a temporary failure of the first list serves nothing until it succeeds", unavailable(),
			func(w *watcherFixture) {
				time.Sleep(4 * time.Second)
				w.requireServed("while lists fail")
				w.watcherErr.set(nil, false)
				time.Sleep(time.Minute)
				w.requireServed("after a list succeeded", "a1 c")
				w.requireLogLines("one line for all retries", unlisted)
			},
		},
		"ForbiddenLater": {
			"listed namespaces remain served while watches and lists are forbidden", nil, func(w *watcherFixture) {
				w.requireServed("at first", "a1 c")
				w.watcherErr.set(forbidden(), false)
				time.Sleep(time.Hour)
				w.requireServed("an hour without rights")
				w.requireLogLines("one line for watches and one for lists", lost, lost)
				w.watcherErr.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.createNamespace("a2")
				w.requireServed("with rights again", "a1 a2 c")
			},
		},
		"AgainLater": {
			"a failure that returns after a success is logged again", nil, func(w *watcherFixture) {
				w.requireServed("at first", "a1 c")
				for range 2 {
					w.watcherErr.set(unavailable(), true)
					time.Sleep(20 * time.Minute) // longer than any watch
					w.createNamespace("a2")
					w.deleteNamespace("a2")
				}
				w.requireLogLines("one line for each failure", lost, lost)
			},
		},
		"Expired": {
			"an expired watch starts again without a log line", nil, func(w *watcherFixture) {
				w.requireServed("at first", "a1 c")
				w.createNamespace("b1")
				w.server.Compact()
				time.Sleep(20 * time.Minute) // longer than any watch
				w.createNamespace("a2")
				w.requireServed("after another creation", "a1 a2 c")
				w.requireLogLines("no failure is logged")
			},
		},
		"Gone": {
			"a watch that ends with Gone or Expired starts again without a log line", nil, func(w *watcherFixture) {
				w.requireServed("at first", "a1 c")
				former := apierrors.NewGone("too old") //nolint:staticcheck // servers may still say so
				for _, word := range []error{former, apierrors.NewResourceExpired("too old")} {
					w.watcherErr.set(word, true)
					time.Sleep(20 * time.Minute) // longer than any watch
				}
				w.createNamespace("a2")
				w.requireServed("after another creation", "a1 a2 c")
				w.requireLogLines("no failure is logged")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatcherFixture(t, "a*", "c")
				w.createNamespace("a1")
				w.createNamespace("c")
				if tc.before != nil {
					w.watcherErr.set(tc.before, false)
				}
				w.run()
				tc.play(w)
			})
		})
	}
}

// TestWatcherStopsWhileItAsks shows that an exit interrupts a pending request, and that this is not logged as a
// failure.
func TestWatcherStopsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcherFixture(t, "a*")
		w.hangs.Store(true)
		w.run()
		w.stop()
		w.requireServed("without any response")
		w.requireLogLines("the end is not logged as a failure")
	})
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", nil)
}

func unavailable() error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "out of order"},
	}
}

func explain(t *testing.T, reason string) {
	if t.Failed() {
		t.Log("the reason of this case:", reason)
	}
}

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
		play   func(w *watching)
	}{
		"Appears": {
			"a new namespace that matches a pattern is served at once", func(w *watching) {
				w.createNamespace("a2")
				w.createNamespace("b")
				w.want("after two creations", "a1 a2")
			},
		},
		"Changes": {
			"a change of labels has no effect", func(w *watching) {
				w.patch("a1", `{"metadata":{"labels":{"x":"y"}}}`)
				w.want("after the change")
			},
		},
		"Vanishes": {
			"a deleted namespace is served for five more seconds, as events of its objects may follow",
			func(w *watching) {
				w.createNamespace("a2")
				w.want("after a creation", "a1 a2")
				w.deleteNamespace("a1")
				time.Sleep(4 * time.Second)
				w.want("four seconds after the deletion", "a1 a2")
				time.Sleep(2 * time.Second)
				w.want("six seconds after the deletion", "a2")
			},
		},
		"ComesBack": {
			"a namespace that is deleted and created again remains served", func(w *watching) {
				w.deleteNamespace("a1")
				time.Sleep(2 * time.Second)
				w.createNamespace("a1")
				time.Sleep(time.Minute)
				w.want("a minute after the creation", "a1", "a1")
				w.deleteNamespace("a1")
				time.Sleep(time.Minute)
				w.want("a minute after another deletion", "a1", "")
			},
		},
		"Ends": {
			"a terminating namespace is served while it has content", func(w *watching) {
				w.patch("a1", `{"metadata":{"finalizers":["kubernetes.io/content"]}}`)
				w.deleteNamespace("a1")
				w.setContentRemaining("a1", "True")
				time.Sleep(time.Hour)
				w.want("with content")
				w.setContentRemaining("a1", "False")
				time.Sleep(time.Minute)
				w.want("without content", "a1", "")
			},
		},
		"VanishesUnseen": {
			"a namespace that was deleted without a watch is removed by the next list", func(w *watching) {
				w.fails.set(unavailable(), false)
				time.Sleep(20 * time.Minute) // longer than any watch
				w.deleteNamespace("a1")
				w.server.Compact()
				w.fails.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.want("after the next list", "a1", "")
			},
		},
		"Exit": {
			"nothing is reported after the end, not even a pending removal", func(w *watching) {
				w.deleteNamespace("a1")
				w.want("before the end", "a1")
				w.stop()
				time.Sleep(time.Minute)
				w.want("a minute after the end")
				w.wantLines("the end is not logged as a failure")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatching(t, "a*")
				w.createNamespace("b0")
				w.createNamespace("a1")
				w.run()
				w.want("the matching ones in one call", "a1")
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
		play   func(w *watching)
	}{
		"Forbidden": {
			"named namespaces are served without a list, and patterns as soon as lists succeed", forbidden(),
			func(w *watching) {
				w.want("with forbidden lists", "c")
				time.Sleep(9 * time.Minute)
				w.want("after nine minutes of retries", "c")
				w.wantLines("one line for all retries", refused)
				w.fails.set(nil, false)
				time.Sleep(5 * time.Minute)
				w.want("after a list succeeded", "a1 c")
				w.createNamespace("a2")
				w.want("after a creation", "a1 a2 c")
			},
		},
		"OutOfOrder": {
			"a temporary failure of the first list serves nothing until it succeeds", unavailable(), func(w *watching) {
				time.Sleep(4 * time.Second)
				w.want("while lists fail")
				w.fails.set(nil, false)
				time.Sleep(time.Minute)
				w.want("after a list succeeded", "a1 c")
				w.wantLines("one line for all retries", unlisted)
			},
		},
		"ForbiddenLater": {
			"listed namespaces remain served while watches and lists are forbidden", nil, func(w *watching) {
				w.want("at first", "a1 c")
				w.fails.set(forbidden(), false)
				time.Sleep(time.Hour)
				w.want("an hour without rights")
				w.wantLines("one line for watches and one for lists", lost, lost)
				w.fails.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.createNamespace("a2")
				w.want("with rights again", "a1 a2 c")
			},
		},
		"AgainLater": {
			"a failure that returns after a success is logged again", nil, func(w *watching) {
				w.want("at first", "a1 c")
				for range 2 {
					w.fails.set(unavailable(), true)
					time.Sleep(20 * time.Minute) // longer than any watch
					w.createNamespace("a2")
					w.deleteNamespace("a2")
				}
				w.wantLines("one line for each failure", lost, lost)
			},
		},
		"Expired": {
			"an expired watch starts again without a log line", nil, func(w *watching) {
				w.want("at first", "a1 c")
				w.createNamespace("b1")
				w.server.Compact()
				time.Sleep(20 * time.Minute) // longer than any watch
				w.createNamespace("a2")
				w.want("after another creation", "a1 a2 c")
				w.wantLines("no failure is logged")
			},
		},
		"Gone": {
			"a watch that ends with Gone or Expired starts again without a log line", nil, func(w *watching) {
				w.want("at first", "a1 c")
				former := apierrors.NewGone("too old") //nolint:staticcheck // servers may still say so
				for _, word := range []error{former, apierrors.NewResourceExpired("too old")} {
					w.fails.set(word, true)
					time.Sleep(20 * time.Minute) // longer than any watch
				}
				w.createNamespace("a2")
				w.want("after another creation", "a1 a2 c")
				w.wantLines("no failure is logged")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatching(t, "a*", "c")
				w.createNamespace("a1")
				w.createNamespace("c")
				if tc.before != nil {
					w.fails.set(tc.before, false)
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
		w := newWatching(t, "a*")
		w.hangs.Store(true)
		w.run()
		w.stop()
		w.want("without any response")
		w.wantLines("the end is not logged as a failure")
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

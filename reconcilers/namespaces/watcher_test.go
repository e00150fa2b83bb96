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

func TestWatcher(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *watching)
	}{
		"Appears": {
			"a namespace is served as soon as it is there, if a pattern matches it", func(w *watching) {
				w.open("a2")
				w.open("b")
				w.want("two more", "a1 a2")
			},
		},
		"Changes": {
			"labels of namespaces concern nobody", func(w *watching) {
				w.patch("a1", `{"metadata":{"labels":{"x":"y"}}}`)
				w.want("changed")
			},
		},
		"Vanishes": {
			"the last events of its objects may come after its own", func(w *watching) {
				w.open("a2")
				w.want("another", "a1 a2")
				w.raze("a1")
				time.Sleep(4 * time.Second)
				w.want("some seconds later it is served still", "a1 a2")
				time.Sleep(2 * time.Second)
				w.want("in the end", "a2")
			},
		},
		"ComesBack": {
			"a namespace that is deleted and made again goes on being served", func(w *watching) {
				w.raze("a1")
				time.Sleep(2 * time.Second)
				w.open("a1")
				time.Sleep(time.Minute)
				w.want("a minute later", "a1", "a1")
				w.raze("a1")
				time.Sleep(time.Minute)
				w.want("gone for good", "a1", "")
			},
		},
		"Ends": {
			"as long as anything is left in it, its objects need their handlers", func(w *watching) {
				w.patch("a1", `{"metadata":{"finalizers":["kubernetes.io/content"]}}`)
				w.raze("a1")
				w.judge("a1", "True")
				time.Sleep(time.Hour)
				w.want("it is not empty")
				w.judge("a1", "False")
				time.Sleep(time.Minute)
				w.want("it is", "a1", "")
			},
		},
		"VanishesUnseen": {
			"a list tells what no watch has told", func(w *watching) {
				w.fails.set(unavailable(), false)
				time.Sleep(20 * time.Minute) // any watch has ended
				w.raze("a1")
				w.server.Compact()
				w.fails.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.want("it works again", "a1", "")
			},
		},
		"Exit": {
			"nothing is told after the end, not even of what was about to go", func(w *watching) {
				w.raze("a1")
				w.want("it is served still", "a1")
				w.stop()
				time.Sleep(time.Minute)
				w.want("a minute after the end")
				w.wantLines("an end is no failure")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatching(t, "a*")
				w.open("b0")
				w.open("a1")
				w.run()
				w.want("all at once, those that match", "a1")
				tc.play(w)
			})
		})
	}
}

func TestWatcherIsRefused(t *testing.T) {
	const refused, lost, unlisted = "Not allowed to list", "Cannot watch", "Cannot list"
	tests := map[string]struct {
		reason string
		before error // what keeps it from listing anything
		play   func(w *watching)
	}{
		"Forbidden": {
			"what is named in full needs no list; the rest has to wait until it may be listed", forbidden(),
			func(w *watching) {
				w.want("at once", "c")
				time.Sleep(9 * time.Minute)
				w.want("it is tried again every five minutes", "c")
				w.wantLines("it is said once", refused)
				w.fails.set(nil, false)
				time.Sleep(5 * time.Minute)
				w.want("it may be listed", "a1 c")
				w.open("a2")
				w.want("another", "a1 a2 c")
			},
		},
		"OutOfOrder": {
			"nobody says that namespaces may not be listed, so they will be", unavailable(), func(w *watching) {
				time.Sleep(4 * time.Second)
				w.want("nothing is known")
				w.fails.set(nil, false)
				time.Sleep(time.Minute)
				w.want("soon after it works again", "a1 c")
				w.wantLines("it is said once", unlisted)
			},
		},
		"ForbiddenLater": {
			"what was listed goes on being served", nil, func(w *watching) {
				w.want("at first", "a1 c")
				w.fails.set(forbidden(), false)
				time.Sleep(time.Hour)
				w.want("nothing else is known")
				w.wantLines("it is said once of watches, and once of lists", lost, lost)
				w.fails.set(nil, false)
				time.Sleep(2 * time.Minute)
				w.open("a2")
				w.want("allowed again", "a1 a2 c")
			},
		},
		"AgainLater": {
			"a failure is news after it worked in between", nil, func(w *watching) {
				w.want("at first", "a1 c")
				for range 2 {
					w.fails.set(unavailable(), true)
					time.Sleep(20 * time.Minute) // any watch has ended
					w.open("a2")
					w.raze("a2")
				}
				w.wantLines("each time", lost, lost)
			},
		},
		"Expired": {
			"a watch that was away for too long begins anew: that happens to everybody", nil, func(w *watching) {
				w.want("at first", "a1 c")
				w.open("b1")
				w.server.Compact()
				time.Sleep(20 * time.Minute) // any watch has ended
				w.open("a2")
				w.want("it is watched on", "a1 a2 c")
				w.wantLines("that is no failure")
			},
		},
		"Gone": {
			"these are words for the same", nil, func(w *watching) {
				w.want("at first", "a1 c")
				former := apierrors.NewGone("too old") //nolint:staticcheck // servers may still say so
				for _, word := range []error{former, apierrors.NewResourceExpired("too old")} {
					w.fails.set(word, true)
					time.Sleep(20 * time.Minute) // any watch has ended
				}
				w.open("a2")
				w.want("it is watched on", "a1 a2 c")
				w.wantLines("that is no failure")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				w := newWatching(t, "a*", "c")
				w.open("a1")
				w.open("c")
				if tc.before != nil {
					w.fails.set(tc.before, false)
				}
				w.run()
				tc.play(w)
			})
		})
	}
}

// An exit does not wait for an answer, and what it breaks off is no failure.
func TestWatcherStopsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatching(t, "a*")
		w.hangs.Store(true)
		w.run()
		w.stop()
		w.want("nothing was known")
		w.wantLines("an end is no failure")
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

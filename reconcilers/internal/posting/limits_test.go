package posting_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// outcomes counts the outcomes of events.
type outcomes struct {
	mu     sync.Mutex
	counts map[posting.EventOutcome]int
}

func (o *outcomes) count(what posting.EventOutcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[posting.EventOutcome]int{}
	}
	o.counts[what]++
}

func (o *outcomes) countsByOutcome() map[posting.EventOutcome]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts)
}

// startLimitedPoster returns a running poster with limits, and the outcomes of its events.
func startLimitedPoster(t *testing.T, s *server) (*posting.QueuePoster, *outcomes) {
	t.Helper()
	seen := &outcomes{}
	poster := posting.New(s, posting.Options{Component: "op", Count: seen.count})
	t.Cleanup(startPoster(t.Context(), t, poster))
	return poster, seen
}

func objectNamed(name string) object {
	about := example()
	about["metadata"] = object{"name": name, "namespace": "ns1", "uid": "uid-" + name}
	return about
}

// TestIdenticalEventsAreCounted shows that an identical event increases the count of the first one, with the times of
// the first and the last.
func TestIdenticalEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster, seen := startLimitedPoster(t, s)
		for range 3 {
			for _, message := range []string{"one", "other"} {
				poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", message)
				poster.Post(t.Context(), objectNamed("kex2"), corev1.EventTypeNormal, "R", message)
			}
			poster.Post(t.Context(), example(), "Error", "R", "one")
			time.Sleep(time.Minute)
		}
		got := map[string]int32{}
		for _, event := range s.all() {
			got[event.InvolvedObject.Name+" "+event.Type+" "+event.Message] = event.Count
			if took := event.LastTimestamp.Sub(event.FirstTimestamp.Time); took != 2*time.Minute {
				t.Errorf("got %s between the first and the last time, want two minutes", took)
			}
		}
		want := map[string]int32{
			"kex1 Normal one": 3, "kex1 Normal other": 3, "kex2 Normal one": 3, "kex2 Normal other": 3,
			"kex1 Error one": 3,
		}
		if d := cmp.Diff(want, got); d != "" || len(s.all()) != len(want) {
			t.Errorf("events with another object, message or type are counted apart: -want, +got:\n%s", d)
		}
		if d := cmp.Diff(map[posting.EventOutcome]int{posting.Posted: 5, posting.Counted: 10},
			seen.countsByOutcome()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestEventsOfOneObjectAreLimited shows that different messages are never merged, but limited in number for each
// object.
func TestEventsOfOneObjectAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster, seen := startLimitedPoster(t, s)
		for i := range 60 {
			poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", fmt.Sprint("message ", i))
		}
		poster.Post(t.Context(), example(), corev1.EventTypeWarning, "R", "of another type")
		poster.Post(t.Context(), objectNamed("kex2"), corev1.EventTypeNormal, "R", "of another object")
		synctest.Wait()
		if d := cmp.Diff(map[posting.EventOutcome]int{posting.Posted: 27, posting.Limited: 35},
			seen.countsByOutcome()); d != "" {
			t.Errorf("events of another type or object are not limited: -want, +got:\n%s", d)
		}
		time.Sleep(10 * time.Minute)
		for i := range 60 {
			poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", fmt.Sprint("late ", i))
		}
		synctest.Wait()
		if got := len(s.messages()); got != 37 {
			t.Errorf("after ten minutes: got %d events, want 37", got)
		}
	})
}

// TestLimitedEventsAreCountedLater shows that an event that was not posted due to the limit is counted by the next one
// that is.
func TestLimitedEventsAreCountedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster, seen := startLimitedPoster(t, s)
		post := func() { poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", "m") }
		for range 100 {
			post()
		}
		time.Sleep(time.Hour)
		post()
		synctest.Wait()
		if got := s.all(); len(got) != 1 || got[0].Count != 101 || seen.countsByOutcome()[posting.Limited] != 75 {
			t.Errorf("got %v, and %v", got, seen.countsByOutcome())
		}
	})
}

// TestAllEventsAreLimited shows that all events together are limited, and that the excess is posted later.
func TestAllEventsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster, _ := startLimitedPoster(t, s)
		for i := range 500 {
			poster.Post(t.Context(), objectNamed(fmt.Sprint(i)), corev1.EventTypeNormal, "R", "m")
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if got := len(s.messages()); got != 200 {
			t.Errorf("after ten seconds: got %d events, want 200", got)
		}
		time.Sleep(time.Minute)
		if got := len(s.messages()); got != 500 {
			t.Errorf("after a minute: got %d events, want 500", got)
		}
	})
}

// TestCountingGoesWrong shows how errors of counting are treated: an expired or forbidden event is posted as a new one.
func TestCountingGoesWrong(t *testing.T) {
	resource := corev1.Resource("events")
	tests := map[string]struct {
		reason string
		err    error
		events int
		lines  int
		want   map[posting.EventOutcome]int
	}{
		"Expired": {
			reason: "an event that expired on the API server is posted as a new one",
			err:    apierrors.NewNotFound(resource, "e"), events: 3,
			want: map[posting.EventOutcome]int{posting.Posted: 3},
		},
		"Forbidden": {
			reason: "without permission to patch events, as in Kopf, each is posted as a new one",
			err:    apierrors.NewForbidden(resource, "e", nil), events: 3, lines: 1,
			want: map[posting.EventOutcome]int{posting.Posted: 3},
		},
		"Other": {
			reason: "any other failure to count is logged, and the event is lost",
			err:    errors.New("no route"), events: 1, lines: 2,
			want: map[posting.EventOutcome]int{posting.Posted: 1, posting.Failed: 2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, lines := collectLogs(t.Context())
				s, seen := &server{patch: func(context.Context) error { return tc.err }}, &outcomes{}
				poster := posting.New(s, posting.Options{Count: seen.count})
				defer startPoster(ctx, t, poster)()
				for range 3 {
					poster.Post(ctx, example(), corev1.EventTypeNormal, "R", "m")
				}
				synctest.Wait()
				events := len(s.all())
				if events != tc.events || len(lines()) != tc.lines || !maps.Equal(seen.countsByOutcome(), tc.want) {
					t.Errorf("%s: got %d events, %v, %q", tc.reason, events, seen.countsByOutcome(), lines())
				}
			})
		})
	}
}

// TestLimitsAtTheExit shows that the limits apply at the exit, and that the events left after two seconds are lost.
func TestLimitsAtTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seen := &server{}, &outcomes{}
		poster := posting.New(s, posting.Options{Count: seen.count})
		ctx, lines := collectLogs(t.Context())
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		for i := range 500 {
			poster.Post(ctx, objectNamed(fmt.Sprint(i)), corev1.EventTypeNormal, "R", "m")
		}
		startPoster(ctx, t, poster)()
		got := seen.countsByOutcome()
		posted, lost := got[posting.Posted], got[posting.Failed]+got[posting.Dropped]
		// The last event is due at the very end of the time, so it may be posted or lost.
		if posted < 119 || posted > 120 || posted+lost != 500 || len(lines()) == 0 {
			t.Errorf("want 100 events at once and 10 per second for two seconds, got %v and %d lines",
				got, len(lines()))
		}
	})
}

// TestNoTimeAtTheExit shows that the first event that is too late at the exit ends the posting of those after it.
func TestNoTimeAtTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := collectLogs(t.Context())
		ctx, cancel := context.WithCancel(ctx)
		first := true
		s, seen := &server{create: func(context.Context) error {
			if first { // so that no other event is due at the very end
				first = false
				time.Sleep(50 * time.Millisecond)
				cancel()
			}
			return nil
		}}, &outcomes{}
		poster := posting.New(s, posting.Options{Count: seen.count})
		for i := range 500 {
			poster.Post(ctx, objectNamed(fmt.Sprint(i)), corev1.EventTypeNormal, "R", "m")
		}
		if err := poster.Start(ctx); err != nil {
			t.Errorf("the end of the context is returned as an error: %v", err)
		}
		want := map[posting.EventOutcome]int{posting.Posted: 120, posting.Failed: 1, posting.Dropped: 379}
		if d := cmp.Diff(want, seen.countsByOutcome()); d != "" || len(lines()) != 2 {
			t.Errorf("got %d lines, want one for each kind of loss; -want, +got:\n%s", len(lines()), d)
		}
	})
}

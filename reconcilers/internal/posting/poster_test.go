package posting_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

// TestPostDrops shows that events about events are dropped, as they could cause further ones.
func TestPostDrops(t *testing.T) {
	tests := map[string]struct {
		reason  string
		about   object
		dropped bool
	}{
		"CoreEvent": {
			reason:  "an event about a core event is dropped, as it could cause an endless chain",
			about:   object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "ns1"}},
			dropped: true,
		},
		"EventsEvent": {
			reason: "an event about an event of the newer group is posted, as in Kopf",
			about: object{
				"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "ns1"},
			},
		},
		"OtherCore": {
			reason: "an event about another core object is posted",
			about:  object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"}},
		},
		"Nothing": {reason: "an event about an empty object is posted", about: nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				poster := posting.New(s, posting.Options{Component: "op", Plain: true})
				poster.Post(t.Context(), tc.about, corev1.EventTypeNormal, "R", "m")
				defer startPoster(t.Context(), t, poster)()
				synctest.Wait()
				if got := len(s.messages()) == 0; got != tc.dropped {
					t.Errorf("%s: dropped: %v", tc.reason, got)
				}
			})
		})
	}
}

// TestPostOverflow shows that events beyond the capacity of the queue are dropped with a log line.
func TestPostOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		ctx, lines := collectLogs(t.Context())
		for i := range 1500 {
			poster.Post(ctx, example(), corev1.EventTypeNormal, "Flood", fmt.Sprintf("message %d", i))
		}
		if got := len(lines()); got != 500 {
			t.Errorf("want one line for each of 500 dropped events, got %d", got)
		}
		if last := lines()[len(lines())-1]; !strings.Contains(last, "Flood") || !strings.Contains(
			last, "message 1499",
		) {
			t.Errorf("the line does not describe the lost event: %s", last)
		}
		stop := startPoster(t.Context(), t, poster)
		synctest.Wait()
		got := s.messages()
		if len(got) != 1000 || got[0] != "message 0" || got[999] != "message 999" {
			t.Errorf("want the first thousand events, got %d", len(got))
		}
		poster.Post(ctx, example(), corev1.EventTypeNormal, "Calm", "again")
		synctest.Wait()
		if got := s.messages(); got[len(got)-1] != "again" {
			t.Error("events are not accepted after the queue has room again")
		}
		stop()
	})
}

// TestPostNeverBlocks shows that a server that hangs does not block the handlers.
func TestPostNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{create: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		ctx, lines := collectLogs(t.Context())
		stop := startPoster(ctx, t, poster)
		for range 1001 {
			poster.Post(ctx, example(), corev1.EventTypeNormal, "R", "m")
			synctest.Wait()
		}
		if got := lines(); len(got) != 0 {
			t.Errorf("events are dropped although a thousand may wait: %v", got)
		}
		stop()
		if got := lines(); len(got) != 2 || !strings.Contains(got[1], `"count":1000`) {
			t.Errorf("want a line for the lost request and one for the thousand waiting events: %v", got)
		}
	})
}

// TestPostOnExit shows that waiting events are posted at the exit.
func TestPostOnExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 10 {
			poster.Post(ctx, example(), corev1.EventTypeNormal, "R", strconv.Itoa(i))
		}
		noted, lines := collectLogs(ctx)
		startPoster(noted, t, poster)()
		if got := s.messages(); len(got) != 10 || len(lines()) > 0 {
			t.Errorf("waiting events are not posted at the exit: %v; log: %v", got, lines())
		}
	})
}

// TestPostOnExitInVain shows that an event whose request hangs at the exit is logged as lost.
func TestPostOnExitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{create: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		ctx, lines := collectLogs(t.Context())
		stop := startPoster(ctx, t, poster)
		poster.Post(ctx, example(), corev1.EventTypeNormal, "R", "m")
		synctest.Wait()
		stop()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "Failed to post") {
			t.Errorf("want one line about the lost event: %v", got)
		}
	})
}

// TestPostFailures shows that a refused event is lost and logged, and that later ones are posted.
func TestPostFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("events is forbidden")
		s := &server{}
		s.create = func(context.Context) error { defer func() { fails = nil }(); return fails }
		seen := &outcomes{}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true, Count: seen.count})
		ctx, lines := collectLogs(t.Context())
		poster.Post(ctx, example(), corev1.EventTypeWarning, "First", "one")
		poster.Post(ctx, example(), corev1.EventTypeNormal, "Second", "two")
		poster.Post(ctx, example(), corev1.EventTypeNormal, "Third", "three")
		defer startPoster(ctx, t, poster)()
		synctest.Wait()
		if d := cmp.Diff([]string{"two", "three"}, s.messages()); d != "" {
			t.Errorf("events after a refused one are posted: -want, +got:\n%s", d)
		}
		if d := cmp.Diff(map[posting.EventOutcome]int{posting.Posted: 2, posting.Failed: 1},
			seen.countsByOutcome()); d != "" {
			t.Errorf("all events are counted: -want, +got:\n%s", d)
		}
		if got := lines(); len(got) != 1 {
			t.Fatalf("want one line for the lost event: %v", got)
		}
		for _, text := range []string{"kex1", "ns1", "First", "one", "events is forbidden"} {
			if !strings.Contains(lines()[0], text) {
				t.Errorf("the line does not contain %q: %s", text, lines()[0])
			}
		}
	})
}

// TestPostFailuresOfClusterScopedObjects shows that the line about a lost event has the object's namespace, not the
// event's.
func TestPostFailuresOfClusterScopedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{create: func(context.Context) error { return errors.New("events is forbidden") }}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		ctx, lines := collectLogs(t.Context())
		about := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "n1", "uid": "uid1"}}
		poster.Post(ctx, about, corev1.EventTypeWarning, "First", "one")
		startPoster(ctx, t, poster)()
		const want = `"kind":"Node","namespace":"","name":"n1","uid":"uid1","event":"First","note":"one"`
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("want %s in %v", want, got)
		}
	})
}

// TestPost shows the fields of a posted event, which has the time of its cause.
func TestPost(t *testing.T) {
	tests := map[string]struct {
		reason    string
		about     object
		kind      string
		namespace string
		object    corev1.ObjectReference
	}{
		"ClusterScoped": {
			reason: "an event of a cluster-scoped object gets the default namespace, also in its reference",
			about:  object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "ns1", "uid": "uid1"}},
			kind:   "Normal", namespace: "default",
			object: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Namespace", Namespace: "default", Name: "ns1", UID: "uid1",
			},
		},
		"OwnType": {
			reason: "a type of Kopf that Kubernetes' recorder would refuse is posted", about: example(), kind: "Error",
			namespace: "ns1",
			object: corev1.ObjectReference{
				APIVersion: "kopf.dev/v1", Kind: "KopfExample", Namespace: "ns1", Name: "kex1", UID: "uid1",
			},
		},
		"Namespaced": {
			reason: "an event is posted in the namespace of its object",
			about:  example(), kind: "Warning", namespace: "ns1",
			object: corev1.ObjectReference{
				APIVersion: "kopf.dev/v1", Kind: "KopfExample", Namespace: "ns1", Name: "kex1", UID: "uid1",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				poster := posting.New(s, posting.Options{Component: "op", Plain: true})
				happened := time.Now()
				poster.Post(t.Context(), tc.about, tc.kind, "Reason", "message")
				time.Sleep(time.Hour)
				defer startPoster(t.Context(), t, poster)()
				synctest.Wait()
				want := []*corev1.Event{{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: tc.namespace, GenerateName: "kopf-event-", Name: "kopf-event-0",
					}, InvolvedObject: tc.object,
					Type: tc.kind, Reason: "Reason", Message: "message", Action: "Action?", Source: corev1.EventSource{
						Component: "op",
					},
					FirstTimestamp: metav1.NewTime(happened), LastTimestamp: metav1.NewTime(happened),
					EventTime:           metav1.NewMicroTime(happened),
					ReportingController: "op", ReportingInstance: "dev",
				}}
				if d := cmp.Diff(want, s.events); d != "" {
					t.Errorf(
						"%s, with the time when it happened: -want, +got:\n%s", tc.reason, d,
					)
				}
			})
		})
	}
}

// TestPostWithoutNamespace shows that the namespace for events of cluster-scoped objects is determined when they are
// posted.
func TestPostWithoutNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, namespace := &server{}, ""
		poster := posting.New(s, posting.Options{
			Component: "op", Plain: true, DefaultNamespace: func() string { return namespace },
		})
		about := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "ns1"}}
		post := func() {
			for _, about := range []object{about, example()} {
				poster.Post(t.Context(), about, corev1.EventTypeNormal, "R", "m")
			}
		}
		post()
		namespace = "earlier"
		defer startPoster(t.Context(), t, poster)()
		for _, next := range []string{"later", ""} {
			synctest.Wait()
			namespace = next
			post()
		}
		synctest.Wait()
		var got []string
		for _, event := range s.events {
			got = append(got, event.Namespace+" "+event.InvolvedObject.Namespace)
		}
		want := []string{"earlier earlier", "ns1 ns1", "later later", "ns1 ns1", "default default", "ns1 ns1"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestPostShortensMessages shows that a long message loses its middle.
func TestPostShortensMessages(t *testing.T) {
	head, tail := strings.Repeat("h", 511), strings.Repeat("t", 510)
	tests := map[string]struct{ reason, message, want string }{
		"TooLong": {
			reason:  "a message beyond the limit loses its middle, as the end often has the cause",
			message: head + "12345" + tail,
			want:    head + "..." + tail,
		},
		"OneTooLong": {
			reason:  "a message of one character beyond the limit is shortened",
			message: head + "1234" + tail, want: head + "..." + tail,
		},
		"Limit": {reason: "a message at the limit is kept", message: head + "123" + tail, want: head + "123" + tail},
		"CodePoints": {
			reason: "the limit counts characters, not bytes", message: strings.Repeat("ж", 1024),
			want: strings.Repeat("ж", 1024),
		},
		"LongLetters": {
			reason: "no character is cut in two", message: strings.Repeat("ж", 1025),
			want: strings.Repeat("ж", 511) + "..." + strings.Repeat("ж", 510),
		},
		"Empty": {reason: "an empty message is posted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				poster := posting.New(s, posting.Options{Component: "op", Plain: true})
				poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", tc.message)
				defer startPoster(t.Context(), t, poster)()
				synctest.Wait()
				if d := cmp.Diff([]string{tc.want}, s.messages()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// TestPostKeepsOrder shows that events are posted in their order, one after another.
func TestPostKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{create: func(context.Context) error { time.Sleep(time.Second); return nil }}
		poster := posting.New(s, posting.Options{Component: "op", Plain: true})
		stop := startPoster(t.Context(), t, poster)
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			poster.Post(t.Context(), example(), corev1.EventTypeNormal, "R", want[i])
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if d := cmp.Diff(want, s.messages()); d != "" {
			t.Errorf("events are not posted one by one in their order: -want, +got:\n%s", d)
		}
		stop()
	})
}

// TestPostKeepsTheObject shows that posting does not change the body of the object.
func TestPostKeepsTheObject(t *testing.T) {
	body := example()
	posting.New(&server{}, posting.Options{Component: "op"}).Post(t.Context(), body, corev1.EventTypeNormal, "R", "m")
	if d := cmp.Diff(example(), body); d != "" {
		t.Errorf("the body was changed: -want, +got:\n%s", d)
	}
}

package indexes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// What the handlers wait for is named after ten seconds, then now and then; what is not served any more is not waited
// for.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 10)
		ctx, stop := context.WithCancel(
			logf.IntoContext(t.Context(), funcr.New(func(_, line string) { lines <- line }, funcr.Options{})),
		)
		defer stop()
		r := indexes.NewReadiness()
		r.Begin([]string{"pods", "secrets", "widgets.example.org"}, nil)
		go r.Remind(ctx)
		r.Done("pods")
		r.Done("nobody waits for this")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if len(lines) != 0 {
			t.Errorf("too early: %q", <-lines)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(lines) != 1 {
			t.Fatalf("%d lines in the first minute", len(lines))
		}
		if said := <-lines; !strings.Contains(said, "secrets") || !strings.Contains(
			said, "widgets.example.org",
		) || strings.Contains(said, "pods") {
			t.Errorf("got %q", said)
		}
		waited := make(chan bool, 2)
		go func() { waited <- r.Wait(ctx) }()
		synctest.Wait()
		r.Begin([]string{"secrets"}, nil) // a later round has no widgets any more
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("the secrets are not there yet")
		}
		r.Done("secrets")
		r.Done("secrets")
		if !<-waited || !r.Wait(ctx) {
			t.Error("it is open, and stays open")
		}
	})
}

// As long as the API server does not say what selectors mean, nobody knows what to wait for.
func TestReadinessOfWhatIsNotKnown(t *testing.T) {
	type round struct {
		kinds, unknown []string
		done           string // afterwards
	}
	pods := []string{"pods"}
	tests := map[string]struct {
		reason string
		rounds []round
		want   string // what is waited for; empty if it is open
	}{
		"Nothing":  {"there are no indices", []round{{}}, ""},
		"AllDark":  {"the server is down", []round{{unknown: pods}}, "pods"},
		"NoKinds":  {"what is indexed does not exist", []round{{unknown: pods}, {}}, ""},
		"Answered": {"its kind is waited for", []round{{unknown: pods}, {kinds: []string{"v1 pods"}}}, "v1 pods"},
		"Listed": {"nor is it waited for again", []round{
			{kinds: pods, unknown: []string{"x"}, done: "pods"}, {kinds: []string{"pods", "x.io"}, done: "x.io"},
		}, ""},
		"OneDark": {"the other one may be listed meanwhile", []round{
			{kinds: pods, unknown: []string{"x"}, done: "pods"},
		}, "x"},
		"Again": {"a pause forgets what was known, not what is waited for", []round{
			{kinds: pods}, {unknown: pods},
		}, "pods"},
		"AgainListed": {"it opens once", []round{{kinds: pods, done: "pods"}, {unknown: pods}, {kinds: pods}}, ""},
		"Later":       {"nobody waits for what is served later", []round{{}, {kinds: pods}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			r := indexes.NewReadiness()
			for _, round := range tc.rounds {
				r.Begin(round.kinds, round.unknown)
				r.Done(round.done)
			}
			stop()
			if got := strings.Join(r.Waiting(), ", "); got != tc.want || r.Wait(ctx) != (tc.want == "") {
				t.Errorf("%s: want to wait for %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestReadinessEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := indexes.NewReadiness()
	r.Begin([]string{"pods"}, nil)
	stop()
	if r.Wait(ctx) {
		t.Error("nothing is ready")
	}
}

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

// TestReadiness shows that awaited resources are logged after ten seconds and then rarely, and that resources that are
// not served any more are not awaited.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 10)
		ctx, stop := context.WithCancel(
			logf.IntoContext(t.Context(), funcr.New(func(_, line string) { lines <- line }, funcr.Options{})),
		)
		defer stop()
		r := indexes.NewReadiness()
		r.UpdateKinds([]string{"pods", "secrets", "widgets.example.org"}, nil)
		go r.LogReminders(ctx)
		r.MarkIndexed("pods")
		r.MarkIndexed("unknown")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if len(lines) != 0 {
			t.Errorf("logged too early: %q", <-lines)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(lines) != 1 {
			t.Fatalf("want one line in the first minute, got %d", len(lines))
		}
		if said := <-lines; !strings.Contains(said, "secrets") || !strings.Contains(
			said, "widgets.example.org",
		) || strings.Contains(said, "pods") {
			t.Errorf("got %q", said)
		}
		waited := make(chan bool, 2)
		go func() { waited <- r.Wait(ctx) }()
		synctest.Wait()
		r.UpdateKinds([]string{"secrets"}, nil) // the later round has no widgets
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("Wait has returned before the secrets were listed")
		}
		r.MarkIndexed("secrets")
		r.MarkIndexed("secrets")
		if !<-waited || !r.Wait(ctx) {
			t.Error("want Wait to return true, also when it is called again")
		}
	})
}

// TestReadinessOfWhatIsNotKnown shows which resources are awaited while the API server does not resolve the selectors.
func TestReadinessOfWhatIsNotKnown(t *testing.T) {
	type round struct {
		kinds, unknown []string
		done           string // afterwards
	}
	pods := []string{"pods"}
	tests := map[string]struct {
		reason string
		rounds []round
		want   string // the awaited resources; empty if ready
	}{
		"Nothing": {"nothing is awaited without indices", []round{{}}, ""},
		"AllDark": {"a selector is awaited while the server is down", []round{{unknown: pods}}, "pods"},
		"NoKinds": {"a resource that does not exist is not awaited", []round{{unknown: pods}, {}}, ""},
		"Answered": {"the resolved resource is awaited instead of its selector",
			[]round{{unknown: pods}, {kinds: []string{"v1 pods"}}}, "v1 pods"},
		"Listed": {"a listed resource is not awaited again", []round{
			{kinds: pods, unknown: []string{"x"}, done: "pods"}, {kinds: []string{"pods", "x.io"}, done: "x.io"},
		}, ""},
		"OneDark": {"an unresolved selector is awaited while another resource is already listed", []round{
			{kinds: pods, unknown: []string{"x"}, done: "pods"},
		}, "x"},
		"Again": {"a resource is still awaited if its selector is unresolved after a pause", []round{
			{kinds: pods}, {unknown: pods},
		}, "pods"},
		"AgainListed": {"nothing is awaited again after the first time",
			[]round{{kinds: pods, done: "pods"}, {unknown: pods}, {kinds: pods}}, ""},
		"Later": {"a resource that is served later is not awaited", []round{{}, {kinds: pods}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			r := indexes.NewReadiness()
			for _, round := range tc.rounds {
				r.UpdateKinds(round.kinds, round.unknown)
				r.MarkIndexed(round.done)
			}
			stop()
			if got := strings.Join(r.WaitingFor(), ", "); got != tc.want || r.Wait(ctx) != (tc.want == "") {
				t.Errorf("%s: want to wait for %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestReadinessEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := indexes.NewReadiness()
	r.UpdateKinds([]string{"pods"}, nil)
	stop()
	if r.Wait(ctx) {
		t.Error("Wait is true although its context has ended")
	}
}

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
		r.Begin(ctx, []string{"pods", "secrets", "widgets.example.org"})
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
		r.Begin(ctx, []string{"secrets"}) // a later round has no widgets any more
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

func TestReadinessEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := indexes.NewReadiness()
	r.Begin(ctx, []string{"pods"})
	stop()
	if r.Wait(ctx) {
		t.Error("nothing is ready")
	}
}

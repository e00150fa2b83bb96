package explorer_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// explore plays a scenario on one course, and gives the world as it is in the end.
func explore(t *testing.T, s scenario, c course) *world {
	t.Helper()
	w := &world{t: t, scenario: s, course: c, counts: map[moment]int{}}
	synctest.Test(t, func(t *testing.T) {
		w.begin()
		ctx, stop := context.WithCancel(t.Context())
		ended := w.operate(ctx)
		for _, step := range s.steps {
			time.Sleep(step.after)
			step.do(w)
		}
		time.Sleep(calm)
		w.judge()
		stop()
		ended()
	})
	return w
}

func (w *world) begin() {
	w.server, w.died = memapi.New(), make(chan struct{})
	w.server.Install(
		memapi.Resource{
			Group: group, Version: "v1", Kind: "Carrier", Plural: plural, Namespaced: true, StatusSubresource: true,
		},
	)
	direct, err := client.New(memapi.Config(w.server), client.Options{})
	if err != nil {
		w.t.Fatalf("making a client: %v", err)
	}
	w.client = direct
}

// operate runs the first life of the operator, and the second one if that is killed.
func (w *world) operate(ctx context.Context) (ended func()) {
	first, kill := context.WithCancel(ctx)
	ends := []func(){w.live(first)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer kill()
		select {
		case <-ctx.Done():
		case <-w.died:
			kill()
			time.Sleep(restart)
			ends = append(ends, w.live(ctx))
		}
	}()
	return func() {
		<-done
		for _, end := range ends {
			end()
		}
	}
}

// live starts a process: nothing of it is left to the next one but the API server.
func (w *world) live(ctx context.Context) (ended func()) {
	w.mu.Lock()
	w.lives++
	l := &life{link: &link{world: w, next: w.server}, number: w.lives}
	w.mu.Unlock()
	var connection http.RoundTripper = l.link
	if w.scenario.through != nil {
		connection = w.scenario.through(connection)
	}
	m, err := ctrl.NewManager(memapi.Config(connection), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(), HealthProbeBindAddress: "0",
	})
	if err != nil {
		w.t.Errorf("making a manager: %v", err)
		return func() {}
	}
	op := kopf.New("explorer.example.org", w.scenario.settings)
	w.scenario.register(l, kopf.ForResource(op, group+"/v1", plural))
	if err := op.SetupWithManager(m); err != nil {
		w.t.Errorf("setting the operator up: %v", err)
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx); err != nil && !l.dead.Load() {
			w.t.Errorf("the manager ended: %v", err)
		}
	}()
	return func() { <-done }
}

// Change and Selection are those of the scenarios.
type (
	Change    = kopf.Change[*unstructured.Unstructured]
	Selection = kopf.Selection[*unstructured.Unstructured]
)

// life is one process.
type life struct {
	*link
	number int
}

package orchestration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

// cluster answers discovery requests, and records which resources are served and logged.
type cluster struct {
	orchestrator *orchestration.Orchestrator
	t            *testing.T
	stop         context.CancelFunc
	done         chan struct{}

	mu         sync.Mutex
	running    []string                // the resources that run, each with its handlers
	list       *metav1.APIResourceList // of example.org/v1
	listErr    error                   // returned instead of the list
	blockEnd   chan struct{}           // blocks the end of services until it is closed, if set
	journal    []string
	stopCauses []error // of the ends of services
	logLines   []string

	rounds     int                  // the number of announced rounds
	unanswered []discovery.Selector // as of the last announcement
}

// startOrchestrator starts an orchestrator with the registrations and waits for its immediate effects.
func startOrchestrator(
	t *testing.T, list *metav1.APIResourceList, registrations ...orchestration.SelectedHandler,
) *cluster {
	return startOrchestratorWith(t, list, nil, registrations...)
}

// startOrchestratorWith is like begin, with further documents of the API server for wide selectors.
func startOrchestratorWith(
	t *testing.T, list *metav1.APIResourceList, server discovery.Getter, registrations ...orchestration.SelectedHandler,
) *cluster {
	c := newCluster(t, list)
	c.start(orchestration.New(registrations, c.documents(server), c, nil))
	return c
}

func newCluster(t *testing.T, list *metav1.APIResourceList) *cluster {
	return &cluster{t: t, list: list, done: make(chan struct{})}
}

// documents returns the getter with which the orchestrator reaches the API server.
func (c *cluster) documents(server discovery.Getter) discovery.Getter {
	return discovery.TimeoutGetter{Getter: answers{discoverytest.Lister(c.resourceList), server}}
}

func (c *cluster) start(o *orchestration.Orchestrator) {
	ctx, stop := context.WithCancel(logf.IntoContext(c.t.Context(), funcr.New(c.appendLogLine, funcr.Options{})))
	c.orchestrator, c.stop = o, stop
	go func() {
		defer close(c.done)
		o.Run(ctx)
	}()
	synctest.Wait()
}

// answers serves the list of example.org/v1, and documents for everything else.
type answers struct {
	example   discoverytest.Lister
	documents discovery.Getter
}

func (a answers) Get(ctx context.Context, path string) ([]byte, error) {
	if a.documents == nil || path == "/apis/example.org/v1" {
		return a.example.Get(ctx, path)
	}
	return a.documents.Get(ctx, path)
}

func (c *cluster) resourceList(ctx context.Context, gv string) (*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.listErr != nil:
		return nil, c.listErr
	case gv != "example.org/v1" || c.list == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	return c.list, nil
}

func (c *cluster) AnnounceAssignments(
	_ context.Context, _ []orchestration.Assignment, unanswered []discovery.Selector,
) {
	c.withLock(func() { c.rounds, c.unanswered = c.rounds+1, unanswered })
}

func (c *cluster) Run(ctx context.Context, a orchestration.Assignment) {
	status := ""
	if a.Resource.HasStatus() {
		status = "/status"
	}
	r := a.Resource
	c.withLock(func() { c.running = append(c.running, r.Group+"/"+r.Version+" "+r.Plural+" "+idsOf(a)) })
	c.appendJournal("begin %s%s %s", a.Resource.Plural, status, idsOf(a))
	<-ctx.Done()
	c.withLock(func() {
		c.stopCauses = append(c.stopCauses, context.Cause(ctx))
		c.running = slices.DeleteFunc(c.running, func(one string) bool {
			return one == r.Group+"/"+r.Version+" "+r.Plural+" "+idsOf(a)
		})
	})
	if c.blockEnd != nil {
		<-c.blockEnd
	}
	c.appendJournal("end %s", a.Resource.Plural)
}

// servedResources returns the resources that are served, each with its handlers.
func (c *cluster) servedResources() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.running))
}

func (c *cluster) withLock(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *cluster) appendJournal(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal = append(c.journal, fmt.Sprintf(format, args...))
}

func (c *cluster) appendLogLine(_, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logLines = append(c.logLines, line)
}

// setResources changes the answers of the API server and waits for the given time.
func (c *cluster) setResources(list *metav1.APIResourceList, fails error, within time.Duration) {
	c.mu.Lock()
	c.list, c.listErr = list, fails
	c.mu.Unlock()
	time.Sleep(within)
	synctest.Wait()
}

// setResourcesAndResync changes the answers of the API server and requests a resync, as a watch does whose kind is not
// found.
func (c *cluster) setResourcesAndResync(list *metav1.APIResourceList, fails error) {
	c.mu.Lock()
	c.list, c.listErr = list, fails
	c.mu.Unlock()
	c.orchestrator.RequestResync()
	synctest.Wait()
}

// requireJournal compares the journal since the last check.
func (c *cluster) requireJournal(when string, journal ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := cmp.Diff(journal, c.journal); d != "" {
		c.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
	c.journal = nil
}

// requireLogLines compares the number of log lines since the last check.
func (c *cluster) requireLogLines(when string, lines int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.logLines) != lines {
		c.t.Errorf("%s: %d lines, want %d: %q", when, len(c.logLines), lines, c.logLines)
	}
	c.logLines = nil
}

// end stops the orchestrator and lets lingering services end.
func (c *cluster) end() {
	c.stop()
	if c.blockEnd != nil {
		close(c.blockEnd)
	}
	<-c.done
}

// idsOf returns the handler ids of an assignment.
func idsOf(a orchestration.Assignment) string {
	ids := make([]string, 0, len(a.Handlers))
	for _, h := range a.Handlers {
		ids = append(ids, h.Description.ID)
	}
	return strings.Join(ids, " ")
}

// exampleHandler registers a handler for a kind, or a name, of example.org.
func exampleHandler(kind, name, id string) orchestration.SelectedHandler {
	selector := discovery.OfKind(discoverytest.ExampleV1.WithKind(kind))
	selector.Name = name
	return selectedHandler(selector, id)
}

func selectedHandler(s discovery.Selector, id string) orchestration.SelectedHandler {
	return orchestration.SelectedHandler{Selector: s, Handler: adapters.New(&handlers.Handler{ID: id}, nil)}
}

func mustParseSpelling(t *testing.T, parts ...string) discovery.Selector {
	t.Helper()
	s, err := discovery.ParseSpelling(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *cluster) requireServed(when string, want ...string) {
	c.t.Helper()
	if d := cmp.Diff(want, c.servedResources()); d != "" {
		c.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

func explain(t *testing.T, reason string) {
	if t.Failed() {
		t.Log("the reason of this case:", reason)
	}
}

func (c *cluster) requireUnanswered(when string, want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for _, s := range c.unanswered {
		got = append(got, s.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		c.t.Errorf("%s: unanswered selectors: -want, +got:\n%s", when, d)
	}
}

func (c *cluster) announcedRounds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rounds
}

package namespaces_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// watcherFixture is a watcher of namespaces with its server, and a client of users who create and delete namespaces.
type watcherFixture struct {
	t          *testing.T
	server     *memapi.Server
	userClient dynamic.ResourceInterface
	watcher    *namespaces.NamespaceWatcher
	watcherErr failure     // the error for the watcher, instead of a response
	hangs      atomic.Bool // the watcher gets no response
	cancel     context.CancelFunc
	done       chan struct{}

	mu         sync.Mutex
	servedSets []string // the names of each call
	logLines   []string
}

// failure is an error for requests, or nil.
type failure struct {
	mu        sync.Mutex
	err       error
	failsOnce bool
}

func (f *failure) set(err error, once bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.failsOnce = err, once
}

func (f *failure) takeErr() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	if f.failsOnce {
		f.err = nil
	}
	return err
}

func newWatcherFixture(t *testing.T, patterns ...string) *watcherFixture {
	w := &watcherFixture{t: t, server: memapi.New(), done: make(chan struct{})}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	w.userClient = dynamic.NewForConfigOrDie(memapi.Config(w.server)).Resource(resource)
	connection := w.server.Connect()
	connection.Before = func(ctx context.Context, _ memapi.Request) error {
		if w.hangs.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		return w.watcherErr.takeErr()
	}
	w.watcher = &namespaces.NamespaceWatcher{Client: dynamic.NewForConfigOrDie(memapi.Config(connection)),
		Serve: w.recordServed}
	for _, one := range patterns {
		w.watcher.Patterns = append(w.watcher.Patterns, namespaces.ParsePattern(one))
	}
	return w
}

// run runs the watcher until the test ends, and waits for the immediate effects.
func (w *watcherFixture) run() {
	ctx, cancel := context.WithCancel(logf.IntoContext(w.t.Context(), funcr.New(w.appendLogLine, funcr.Options{})))
	w.cancel = cancel
	go func() {
		defer close(w.done)
		w.watcher.Run(ctx)
	}()
	w.t.Cleanup(w.stop)
	time.Sleep(time.Second)
}

func (w *watcherFixture) stop() {
	w.cancel()
	<-w.done
}

func (w *watcherFixture) recordServed(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servedSets = append(w.servedSets, strings.Join(names, " "))
}

func (w *watcherFixture) appendLogLine(_, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLines = append(w.logLines, line)
}

// requireServed compares the calls since the last check.
func (w *watcherFixture) requireServed(when string, served ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := cmp.Diff(served, w.servedSets); d != "" {
		w.t.Errorf("%s: served: -want, +got:\n%s", when, d)
	}
	w.servedSets = nil
}

// requireLogLines checks that the log lines contain these texts.
func (w *watcherFixture) requireLogLines(when string, beginnings ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.logLines) != len(beginnings) {
		w.t.Errorf("%s: want %d lines, got %q", when, len(beginnings), w.logLines)
		return
	}
	for i, want := range beginnings {
		if !strings.Contains(w.logLines[i], want) {
			w.t.Errorf("%s: want %q, got %q", when, want, w.logLines[i])
		}
	}
}

func (w *watcherFixture) requireNoError(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *watcherFixture) createNamespace(name string) {
	w.t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(name)
	w.requireNoError(w.userClient.Create(w.t.Context(), namespace, metav1.CreateOptions{}))
}

func (w *watcherFixture) patch(name, patch string, subresources ...string) {
	w.t.Helper()
	w.requireNoError(w.userClient.Patch(
		w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...,
	))
}

// setContentRemaining sets whether a terminating namespace has remaining content.
func (w *watcherFixture) setContentRemaining(name, remaining string) {
	w.t.Helper()
	status := `{"status":{"conditions":[{"type":"NamespaceContentRemaining","status":"` + remaining + `"}]}}`
	w.patch(name, status, "status")
}

func (w *watcherFixture) deleteNamespace(name string) {
	w.t.Helper()
	w.requireNoError(nil, w.userClient.Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

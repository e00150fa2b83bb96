package kopf_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// objectHistory records what happens to one object with an operator.
type objectHistory struct {
	mu    sync.Mutex
	lines []string        // of the log
	calls []time.Duration // since the creation
	posts []string        // of Kubernetes events

	events []string // the same events, with all fields
}

func (l *objectHistory) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// observeObjectLife creates an object, deletes it after an hour, and waits for another hour.
func observeObjectLife(
	t *testing.T, settings kopf.Settings, register func(kopf.Selection[*Widget], func()),
) *objectHistory {
	t.Helper()
	seen, server := &objectHistory{}, memapi.New()
	server.Install(widgetResource)
	server.Install(memapi.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true, Plain: true})
	op, began := kopf.New("test.example.org", settings), time.Time{}
	register(kopf.For(op, &Widget{}), func() {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.calls = append(seen.calls, time.Since(began).Round(time.Second))
	})
	stop := operate(t, server, op, funcr.New(func(_, line string) { seen.add(line) }, funcr.Options{}))
	defer func() { stop(); synctest.Wait() }() // the recorded values may still be written
	time.Sleep(time.Minute)
	began = time.Now()
	server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	time.Sleep(time.Hour)
	server.Delete(widgetResource, "ns", "w1")
	time.Sleep(time.Hour)
	seen.posts = eventReasons(t, server)
	for _, event := range eventsOf(t, server) {
		seen.events = append(seen.events, fmt.Sprintf("%d %s %s %s %s %s: %s", event.Count, event.GenerateName,
			event.Source.Component, event.ReportingInstance, event.Type, event.Reason, event.Message))
	}
	return seen
}

// eventReasons returns the reasons of all Kubernetes events.
func eventReasons(t *testing.T, server *memapi.Server) (reasons []string) {
	t.Helper()
	for _, event := range eventsOf(t, server) {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

// eventsOf returns all Kubernetes events of the server.
func eventsOf(t *testing.T, server *memapi.Server) []corev1.Event {
	t.Helper()
	user, err := client.New(memapi.Config(server), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	var events corev1.EventList
	if err := user.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	return events.Items
}

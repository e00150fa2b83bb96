package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
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

// TestPostingIsDisabled shows that Disabled posts no Kubernetes events. The scheme of the manager does not have their
// type.
func TestPostingIsDisabled(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			settings := kopf.Settings{Posting: kopf.PostingSettings{Disabled: disabled}}
			seen := observeObjectLife(t, settings, func(widgets kopf.Selection[*Widget], called func()) {
				widgets.OnCreate("c", func(_ context.Context, c *Change) error {
					called()
					c.Info("Provisioned", "here it is")
					return nil
				})
			})
			want := map[bool][]string{false: {"Provisioned"}}[disabled]
			if d := cmp.Diff(want, seen.posts); d != "" || len(seen.calls) != 1 {
				t.Errorf("disabled: %t, %d calls; posted (-want, +got):\n%s", disabled, len(seen.calls), d)
			}
		})
	}
}

// TestDefaultBackoff shows that failed handlers are retried with the default backoff.
func TestDefaultBackoff(t *testing.T) {
	for backoff, want := range map[time.Duration][]time.Duration{
		0:                {0, time.Minute, 2 * time.Minute},
		10 * time.Second: {0, 10 * time.Second, 20 * time.Second},
		kopf.Immediately: {0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			settings := kopf.Settings{Execution: kopf.ExecutionSettings{DefaultBackoff: backoff}}
			seen := observeObjectLife(t, settings, func(widgets kopf.Selection[*Widget], called func()) {
				widgets.OnCreate("c", func(_ context.Context, c *Change) error {
					if called(); c.Retry < 2 {
						return errors.New("not yet")
					}
					return nil
				})
			})
			if d := cmp.Diff(want, seen.calls); d != "" {
				t.Errorf("calls with a backoff of %s (-want, +got):\n%s", backoff, d)
			}
		})
	}
}

// TestCancellationPolling shows how often a daemon that does not stop is logged.
func TestCancellationPolling(t *testing.T) {
	for polling, want := range map[time.Duration]int{0: 59, 10 * time.Minute: 5, kopf.Never: 0} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			time.AfterFunc(2*time.Hour+30*time.Second, func() { close(release) })
			settings := kopf.Settings{Background: kopf.BackgroundSettings{CancellationPolling: polling}}
			seen := observeObjectLife(t, settings, func(widgets kopf.Selection[*Widget], called func()) {
				widgets.Daemon("d", func(context.Context, *kopf.Task[*Widget]) error {
					called()
					<-release // without regard to its context
					return nil
				})
			})
			told := 0
			for _, line := range seen.lines {
				if strings.Contains(line, "Handler does not stop") {
					told++
				}
			}
			if told != want || len(seen.calls) != 1 {
				t.Errorf("polling %s: %d lines about the daemon, want %d; %d calls", polling, told, want,
					len(seen.calls))
			}
		})
	}
}

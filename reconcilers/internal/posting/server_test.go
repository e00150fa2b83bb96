package posting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

type object = map[string]any

// server is an API server that accepts events unless create or patch return an error.
type server struct {
	mu     sync.Mutex
	events []*corev1.Event
	create func(ctx context.Context) error
	patch  func(ctx context.Context) error

	posted []request
}

// request is a request that creates an event.
type request struct {
	URL     string
	Payload *corev1.Event
}

func (s *server) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	s.posted = append(s.posted, request{
		fmt.Sprintf("/api/v1/namespaces/%s/events", obj.GetNamespace()), obj.(*corev1.Event).DeepCopy(),
	})
	s.mu.Unlock()
	if s.create != nil {
		if err := s.create(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	obj.SetName(fmt.Sprintf("%s%d", obj.GetGenerateName(), len(s.events)))
	s.events = append(s.events, obj.(*corev1.Event).DeepCopy())
	return nil
}

// Patch counts an event as an API server does.
func (s *server) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if s.patch != nil {
		if err := s.patch(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	for _, event := range s.events {
		if event.Name == obj.GetName() {
			return json.Unmarshal(data, event)
		}
	}
	return apierrors.NewNotFound(corev1.Resource("events"), obj.GetName())
}

// all returns the present events.
func (s *server) all() (events []*corev1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.events {
		events = append(events, event.DeepCopy())
	}
	return events
}

func (s *server) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, event := range s.events {
		all = append(all, event.Message)
	}
	return all
}

// collectLogs returns a context that collects log lines, and a function that returns them.
func collectLogs(ctx context.Context) (context.Context, func() []string) {
	var mu sync.Mutex
	var lines []string
	log := funcr.NewJSON(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	return logf.IntoContext(ctx, log), func() []string { mu.Lock(); defer mu.Unlock(); return lines }
}

// startPoster runs the poster until the returned function is called.
func startPoster(ctx context.Context, t *testing.T, poster *posting.QueuePoster) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- poster.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the end of the context is returned as an error: %v", err)
		}
	}
}

func example() object {
	return object{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": object{"name": "kex1", "namespace": "ns1", "uid": "uid1"},
	}
}

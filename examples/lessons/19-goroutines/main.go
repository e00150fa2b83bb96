// Command 19-goroutines publishes the files of a website at the same time.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// storage is shared by all calls of all handlers, so it is safe for concurrent use.
type storage struct {
	slots chan struct{} // limits the uploads of all websites

	mu    sync.Mutex
	files map[types.UID]map[string]string
}

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	s := &storage{slots: make(chan struct{}, 2), files: map[types.UID]map[string]string{}}
	kopf.For(op, &v1.Website{}).On("publish", kopf.CreateUpdateResume(), s.publish, kopf.Timeout(10*time.Minute))
	return op
}

// publish starts goroutines, and waits for all of them.
func (s *storage) publish(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a limit for this call; Timeout is for all attempts
	defer cancel()
	files := []string{"index.html", "feed.xml", "robots.txt"}
	errs := make([]error, len(files))
	var uploads sync.WaitGroup
	for i, file := range files {
		uploads.Go(func() { errs[i] = s.upload(ctx, c.Object.UID, file, c.Object.Spec.Title) })
	}
	uploads.Wait()
	if err := errors.Join(errs...); err != nil {
		return kopf.Temporary(err, 10*time.Second)
	}
	log.FromContext(ctx).Info("Published", "files", s.count(c.Object.UID))
	return nil
}

// upload ends early if the context ends. It can be repeated without harm: the uid and the file are the key.
func (s *storage) upload(ctx context.Context, site types.UID, file, text string) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-time.After(2 * time.Second): // a slow network
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[site] == nil {
		s.files[site] = map[string]string{}
	}
	s.files[site][file] = text
	return nil
}

func (s *storage) count(site types.UID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files[site])
}

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errCut is all that a process hears of the API server once it is dead.
var errCut = errors.New("the connection is cut")

// server is an API server with one object: the rules that a pass depends on, in memory.
type server struct {
	statusSubresource bool
	// before is asked ahead of each write, after follows each that took effect; the number counts from 1.
	// They may edit the object, or take longer than anybody waits; an error is the answer, whatever was done.
	before, after func(write) error
	// schema refuses contents; webhook changes them.
	schema  func(body map[string]any) error
	webhook func(body map[string]any)

	mu      sync.Mutex
	object  map[string]any // nil: there is no such object
	version int
	count   int
	writes  []string // what was asked for and what was the answer, such as "main 200"
	reads   int
}

// write is one PATCH request.
type write struct {
	number int
	status bool
	patch  map[string]any
	kind   string
}

func (w write) String() string {
	if w.status {
		return "status"
	}
	return "main"
}

// link is the connection of one process: patching.Client.
type link struct {
	*server
	cut atomic.Bool
}

func (l *link) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if l.cut.Load() {
		return errCut
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.object == nil {
		return refusal(404)
	}
	obj.(*unstructured.Unstructured).Object = copied(l.object)
	return nil
}

func (l *link) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return l.send(ctx, false, obj, patch)
}

func (l *link) Status() client.SubResourceWriter { return statusLink{link: l} }

type statusLink struct {
	client.SubResourceWriter
	link *link
}

func (l statusLink) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return l.link.send(ctx, true, obj, patch)
}

func (l *link) send(ctx context.Context, status bool, obj client.Object, patch client.Patch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	if l.cut.Load() {
		return errCut
	}
	w := write{number: l.next(), status: status, kind: string(patch.Type())}
	w.patch, _ = decoded(data).(map[string]any)
	if l.before != nil {
		err = l.before(w)
	}
	if l.cut.Load() {
		return errCut
	}
	var answer map[string]any
	if err = errors.Join(err, ctx.Err()); err == nil {
		if answer, err = l.apply(w, data); err == nil && l.after != nil {
			err = errors.Join(l.after(w), ctx.Err())
		}
	}
	l.note(w, err)
	if l.cut.Load() {
		return errCut
	}
	if err == nil {
		obj.(*unstructured.Unstructured).Object = answer
	}
	return err
}

func (s *server) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

func (s *server) note(w write, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := "200"
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		code = strconv.Itoa(int(status.Status().Code))
	case err != nil:
		code = "lost"
	}
	s.writes = append(s.writes, fmt.Sprintf("%s %s", w, code))
}

package controller

import (
	"context"
	"errors"
	"io"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestWatchFailures shows which failures of watches are logged, and that a missing kind leads to a new discovery.
func TestWatchFailures(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{}, "widgets")
	ended, end := context.WithCancel(t.Context())
	end()
	tests := map[string]struct {
		reason string
		ctx    context.Context
		errors []error
		works  bool // between the failures
		lines  int
		resync bool
	}{
		"Exit": {"the end of the operator is not logged as a failure", ended, []error{io.EOF, gone}, false, 0, false},
		"Expired": {
			"an expired watch starts again without a log line", t.Context(),
			[]error{apierrors.NewResourceExpired("too old")}, false, 0, false,
		},
		"Repeated": {
			"a repeated failure is logged once", t.Context(), []error{io.EOF, io.EOF, io.EOF}, false, 1, false,
		},
		"Different": {
			"a failure with another reason is logged",
			t.Context(), []error{io.EOF, errors.New("forbidden"), io.EOF}, false, 3, false,
		},
		"AgainLater": {
			"a failure that returns after a successful list is logged again",
			t.Context(), []error{io.EOF, io.EOF}, true,
			2, false,
		},
		"NotFound": {
			"a missing kind requests a resync of the discovery", t.Context(), []error{gone, gone}, false, 1, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newObjectFixture(t, newCreateHandler("c"))
			requested := false
			w.controller.deps.RequestResync = func() { requested = true }
			failed := w.controller.watchErrorHandler()
			server := &unwatchable{}
			reflector := toolscache.NewReflector(server, &unstructured.Unstructured{}, w.cache, 0)
			for _, err := range tc.errors {
				if tc.works {
					_ = reflector.ListAndWatchWithContext(t.Context())
				}
				failed(tc.ctx, reflector, err)
			}
			if len(w.logLines) != tc.lines {
				t.Errorf("%s: want %d lines, got %q", tc.reason, tc.lines, w.logLines)
			}
			if requested != tc.resync {
				t.Errorf("%s: a resync is requested: %v", tc.reason, requested)
			}
		})
	}
}

// unwatchable is a server that can be listed, each time at a later version, but not watched.
type unwatchable struct{ version int }

func (l *unwatchable) List(metav1.ListOptions) (runtime.Object, error) {
	l.version++
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion(strconv.Itoa(l.version))
	return list, nil
}

func (l *unwatchable) Watch(metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("not allowed")
}

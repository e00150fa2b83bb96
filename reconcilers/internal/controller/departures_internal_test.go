package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// departedObject returns an object that the watch does not show any more.
func departedObject(uid string, more map[string]any) source.Object {
	metadata := map[string]any{"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": "5"}
	for key, value := range more {
		metadata[key] = value
	}
	return compacttest.NewObject(map[string]any{"metadata": metadata})
}

// TestDepartures shows how the engine finds out whether an object that a watch does not show any more was deleted or
// only lost its labels. One lookup suffices if it succeeds.
func TestDepartures(t *testing.T) {
	deleting := map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}
	holding := map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"x"}}
	answer := func(uid types.UID) func(int) (types.UID, error) {
		return func(int) (types.UID, error) { return uid, nil }
	}
	failing := func(err error) func(int) (types.UID, error) {
		return func(int) (types.UID, error) { return "", err }
	}
	tests := map[string]struct {
		reason string
		leaves source.Object
		answer func(times int) (types.UID, error)
		met    source.Object // before there is an answer
		after  source.Object // later
		want   string
	}{
		"Gone": {"an object that does not exist any more was deleted",
			departedObject("u1", nil), answer(""), nil, nil, "left, gone, asked 1"},
		"Replaced": {"an object whose name belongs to another one was deleted",
			departedObject("u1", nil), answer("u2"), nil, nil, "left, gone, asked 1"},
		"There": {"an object that still exists was not deleted",
			departedObject("u1", nil), answer("u1"), nil, nil, "left, asked 1"},
		"Back": {
			"an object that matches again is not a new one",
			departedObject("u1", nil), answer("u1"), nil, departedObject("u1", nil),
			"left, back, asked 1",
		},
		"AnotherOneLater": {
			"a different object under the name of an unmatched one is new",
			departedObject("u1", nil), answer("u1"), nil, departedObject("u2", nil),
			"left, new, asked 1",
		},
		"BackBefore": {
			"an object that matches again before the answer ends the lookup",
			departedObject("u1", nil), failing(errors.New("boo")), departedObject("u1", nil), nil,
			"left, back, asked 1",
		},
		"ReplacedBefore": {
			"a replacement ends the first object before the second one begins",
			departedObject("u1", nil), failing(errors.New("boo")),
			departedObject("u2", nil), nil, "left, gone, new, asked 1",
		},
		"Terminated": {"an object in deletion without finalizers was deleted, without a lookup",
			departedObject("u1", deleting), answer("u1"), nil, nil, "gone, asked 0"},
		"Held": {
			"an object in deletion with finalizers may have lost its labels only, so it is looked up",
			departedObject("u1", holding), answer("u1"), nil, nil,
			"left, asked 1",
		},
		"Later": {
			"a failed lookup is retried", departedObject("u1", nil), func(times int) (types.UID, error) {
				if times < 3 {
					return "", errors.New("boo")
				}
				return "", nil
			}, nil, nil, "left, gone, asked 3; retrying",
		},
		"NoKind": {
			"an object of a kind that is not served was deleted", departedObject("u1", nil),
			failing(apierrors.NewNotFound(schema.GroupResource{}, "")), nil, nil, "left, gone, asked 1",
		},
		"Unanswerable": {
			"an object whose lookup is impossible is reported as deleted", departedObject("u1", nil),
			failing(apierrors.NewBadRequest("no such selector")), nil, nil, "left, gone, asked 1; reporting",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var course []string
				say := func(what string) { course = append(course, what) }
				var logged string
				times, answers := 0, make(chan struct{})
				d := newDepartures(func(context.Context, types.NamespacedName) (types.UID, error) {
					<-answers
					times++
					return tc.answer(times)
				}, func(source.Object) { say("left") }, funcr.New(func(_, line string) {
					for _, word := range []string{"retrying", "reporting"} {
						if strings.Contains(line, word) {
							logged += "; " + word
						}
					}
				}, funcr.Options{}))
				end := d.startLookups(t.Context())
				meet := func(obj source.Object) {
					say(map[bool]string{true: "back", false: "new"}[d.TrackReturn(obj)])
				}
				if !d.TrackDeparture(tc.leaves, func() { say("gone") }) {
					say("gone")
				}
				synctest.Wait()
				if tc.met != nil {
					meet(tc.met)
				}
				close(answers)
				time.Sleep(time.Minute)
				synctest.Wait()
				if tc.after != nil {
					meet(tc.after)
				}
				end()
				course = append(course, fmt.Sprint("asked ", times)+logged)
				if diff := cmp.Diff(tc.want, strings.Join(course, ", ")); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

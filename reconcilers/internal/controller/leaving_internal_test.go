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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// departed is an object that the watch does not show any more.
func departed(uid string, more map[string]any) source.Object {
	metadata := map[string]any{"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": "5"}
	for key, value := range more {
		metadata[key] = value
	}
	return compacttest.Of(map[string]any{"metadata": metadata})
}

// What became of objects that are not shown any more is found out, with one question each if that is answered.
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
		"Gone":     {"nobody has the name", departed("u1", nil), answer(""), nil, nil, "left, gone, asked 1"},
		"Replaced": {"another one has it", departed("u1", nil), answer("u2"), nil, nil, "left, gone, asked 1"},
		"There":    {"its labels have changed", departed("u1", nil), answer("u1"), nil, nil, "left, asked 1"},
		"Back": {
			"it was there all the time", departed("u1", nil), answer("u1"), nil, departed("u1", nil),
			"left, back, asked 1",
		},
		"AnotherOneLater": {
			"it is not the one that was there", departed("u1", nil), answer("u1"), nil, departed("u2", nil),
			"left, new, asked 1",
		},
		"BackBefore": {
			"nothing is to be asked then", departed("u1", nil), failing(errors.New("boo")), departed("u1", nil), nil,
			"left, back, asked 1",
		},
		"ReplacedBefore": {
			"the end of one comes before the beginning of the other", departed("u1", nil), failing(errors.New("boo")),
			departed("u2", nil), nil, "left, gone, new, asked 1",
		},
		"Terminated": {"nothing has held it", departed("u1", deleting), answer("u1"), nil, nil, "gone, asked 0"},
		"Held": {
			"it may have lost its labels while it is being deleted", departed("u1", holding), answer("u1"), nil, nil,
			"left, asked 1",
		},
		"Later": {
			"an answer will come", departed("u1", nil), func(times int) (types.UID, error) {
				if times < 3 {
					return "", errors.New("boo")
				}
				return "", nil
			}, nil, nil, "left, gone, asked 3; retrying",
		},
		"NoKind": {
			"there are no objects of a kind that is not there", departed("u1", nil),
			failing(apierrors.NewNotFound(schema.GroupResource{}, "")), nil, nil, "left, gone, asked 1",
		},
		"Unanswerable": {
			"the word of the watch is all that there is", departed("u1", nil),
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
				d := departuresOf(func(context.Context, types.NamespacedName) (types.UID, error) {
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
				end := d.begin(t.Context())
				meet := func(obj source.Object) {
					say(map[bool]string{true: "back", false: "new"}[d.Meet(obj)])
				}
				if !d.Leave(tc.leaves, func() { say("gone") }) {
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

package children_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const prefix = "test.example.org"

// owner returns a Pod that is itself a child of "p" and has the label a=b.
func owner() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
			"namespace": "ns", "name": "o", "uid": "u",
			"labels": map[string]any{"a": "b", prefix + "/parent-uid": "p"},
		},
	}}
}

func TestAdopt(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		keeper    *children.Keeper
		child     string // its namespace
		want      map[string]string
		logs      int
		wantError bool
	}{
		"Labels": {
			"a child gets the labels of its owner, except the parent label", &children.Keeper{Prefix: prefix}, "",
			map[string]string{"a": "b"}, 0, false,
		},
		"NoLabels": {"with NoLabels, the child gets no labels",
			&children.Keeper{Prefix: prefix, NoLabels: true}, "", nil, 0, false},
		"LikeKopf": {
			"with LikeKopf, the child gets all labels of its owner",
			&children.Keeper{Prefix: prefix, LikeKopf: true}, "",
			map[string]string{"a": "b", prefix + "/parent-uid": "p"}, 0, false,
		},
		"NoKeeper": {
			"a nil Keeper copies all labels of the owner",
			nil, "", map[string]string{"a": "b", prefix + "/parent-uid": "p"}, 0, false,
		},
		"OtherSpace": {"a child in another namespace is an error",
			&children.Keeper{Prefix: prefix}, "other", nil, 0, true},
		"KopfElsewhere": {
			"with LikeKopf, a child in another namespace only logs a line",
			&children.Keeper{Prefix: prefix, LikeKopf: true}, "other",
			map[string]string{"a": "b", prefix + "/parent-uid": "p"}, 1, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs := 0
			log := funcr.New(func(string, string) { logs++ }, funcr.Options{})
			parent := owner()
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: tc.child}}
			err := tc.keeper.Adopt(parent, []any{child}, nil, log)
			if (err != nil) != tc.wantError || logs != tc.logs {
				t.Errorf("%s: Adopt(): %v, %d lines", tc.reason, err, logs)
			}
			if d := cmp.Diff(tc.want, child.Labels, cmpopts.EquateEmpty()); d != "" && !tc.wantError {
				t.Errorf("%s: labels -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(owner(), parent); d != "" {
				t.Errorf("%s: the owner -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestCheckWait(t *testing.T) {
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for want, err := range map[string]error{
		"the child is nil":             children.CheckWait((*corev1.Pod)(nil), false, time.Second),
		"the *v1.Pod has no name":      children.CheckWait(&corev1.Pod{}, false, time.Second),
		"the function is nil":          children.CheckWait(named, true, time.Second),
		"timeout(0s): it must be":      children.CheckWait(named, false, 0),
		"timeout: 5ns: did you mean 5": children.CheckWait(named, false, 5),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckWait(): %v, want %q", err, want)
		}
	}
	if err := children.CheckWait(named, false, time.Second); err != nil {
		t.Errorf("CheckWait(): %v", err)
	}
	for want, child := range map[string]client.Object{"&v1.Pod{}": named, "child": owner()} {
		if got := children.ExampleExpression(child); got != want {
			t.Errorf("Example(): %q, want %q", got, want)
		}
	}
}

func TestAwait(t *testing.T) {
	keeper := &children.Keeper{OwnedChildren: &owned.Children{}}
	w := owned.ChildWait{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "c"}
	far := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		reason      string
		former      progress.Wait
		isPending   bool
		describedAs string
	}{
		"First": {"the first call starts the timeout", progress.Wait{}, true, "child ConfigMap c"},
		"Over": {
			"the timeout counts from the former wait",
			progress.Wait{Child: "ConfigMap c", Until: time.Now().Add(-time.Second)}, false, "child ConfigMap c",
		},
		"Longer": {
			"a shorter timeout counts from now", progress.Wait{Child: "ConfigMap c", Until: far}, true,
			"child ConfigMap c",
		},
		"Other": {
			"a former wait for another child does not count",
			progress.Wait{Child: "ConfigMap d", Until: time.Now()}, true,
			"child ConfigMap c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := keeper.EvaluateWait(w, "ns", tc.former, time.Minute)
			if err != nil || got.IsSatisfied || got.Exists || (got.Pending != nil) != tc.isPending {
				t.Fatalf("%s: Await(): %+v, %v", tc.reason, got, err)
			}
			if got.Description != tc.describedAs {
				t.Errorf("%s: described as %q, want %q", tc.reason, got.Description, tc.describedAs)
			}
			if got.Pending != nil && got.Pending.Delay > time.Minute {
				t.Errorf("%s: delayed by %s, want a minute at most", tc.reason, got.Pending.Delay)
			}
		})
	}
}

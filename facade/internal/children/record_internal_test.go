package children

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	web    = identity{"apps", "Deployment", "default", "web"}
	config = identity{"", "ConfigMap", "default", "config"}
	role   = identity{"rbac.authorization.k8s.io", "ClusterRole", "", "reader"}
)

func bodyOf(uid, name, text string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"uid": uid, "annotations": map[string]any{name: text}},
	}
}

func TestRecord(t *testing.T) {
	const name = "a.org/children-of.create"
	tests := map[string]struct {
		reason    string
		uid       string
		text      string
		want      childSet
		wantError string
	}{
		"NoJSON": {
			reason: "a record that is not JSON is an error, so nothing is pruned", uid: "u", text: "{",
			wantError: "annotation " + name,
		},
		"NoChild": {
			reason: "a malformed name of a child is an error", uid: "u", wantError: "apps/v1/Deployment/default/web",
			text: `{"parent":"u","children":{"web":""}}`,
		},
		"OfACopy": {
			reason: "the record of the original is ignored in a copy", uid: "copy",
			text: `{"parent":"u","children":{"v1/ConfigMap/default/config":"1"}}`, want: childSet{},
		},
		"OfAll": {
			reason: "children with a group, of the core group, and without a namespace are read", uid: "u",
			text: `{"parent":"u","children":{"apps/v1/Deployment/default/web":"1","v1/ConfigMap/default/config":"",` +
				`"rbac.authorization.k8s.io/v1/ClusterRole//reader":"2"}}`,
			want: childSet{web: {version: "v1", uid: "1"}, config: {version: "v1"}, role: {version: "v1", uid: "2"}},
		},
		"WithRules": {
			reason: "retained children and the outcomes of runs are read", uid: "u",
			text: `{"parent":"u","children":{"apps/v1/Deployment/default/web":"1"},` +
				`"retained":{"v1/ConfigMap/default/config":"2"},` +
				`"runs":{"apps/v1/Deployment/default/web":"d1 succeeded","v1/ConfigMap/default/config":"d2"}}`,
			want: childSet{
				web:    {version: "v1", uid: "1", run: childRun{"d1", outcomeSucceeded}},
				config: {version: "v1", uid: "2", isRetained: true, run: childRun{digest: "d2"}},
			},
		},
	}
	for test, tc := range tests {
		t.Run(test, func(t *testing.T) {
			got, err := readRecord(bodyOf(tc.uid, name, tc.text), name)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("%s: the error is %v, want one about %q", tc.reason, err, tc.wantError)
				}
				return
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(identity{}, childEntry{}, childRun{})); d != "" ||
				err != nil {
				t.Errorf("%s: %v, -want, +got:\n%s", tc.reason, err, d)
			}
		})
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	kept := childSet{
		web: {version: "v1", uid: "1", run: childRun{"d", outcomeFailed}}, config: {version: "v1", isRetained: true},
		role: {version: "v1", uid: "2", isRetained: true},
	}
	body := map[string]any{"metadata": map[string]any{"uid": "u"}}
	name := recordAnnotation("a.org", body, DeclaringHandler{ID: "create/users"})
	if err := writeRecord(body, "a.org", name, kept); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(body, name)
	if d := cmp.Diff(kept, got, cmp.AllowUnexported(identity{}, childEntry{}, childRun{})); d != "" || err != nil {
		t.Errorf("%v, -want, +got:\n%s", err, d)
	}
	if err := writeRecord(body, "a.org", name, nil); err != nil {
		t.Fatal(err)
	}
	left := body["metadata"].(map[string]any)["annotations"].(map[string]any)
	if d := cmp.Diff(map[string]any{"a.org/kopf-managed": "yes"}, left); d != "" {
		t.Errorf("an empty record must be removed, -want, +got:\n%s", d)
	}
}

func TestSets(t *testing.T) {
	before := childSet{web: {version: "v1", uid: "1"}, config: {version: "v1", uid: "2"}}
	wanted := childSet{web: {version: "v2"}, role: {version: "v1"}}
	union := childSet{web: {version: "v2", uid: "1"}, config: {version: "v1", uid: "2"}, role: {version: "v1"}}
	for reason, tc := range map[string]struct{ want, got childSet }{
		"with keeps the uid and takes the new version": {union, before.mergedWith(wanted)},
		"without returns the children that are not declared": {childSet{config: {version: "v1",
			uid: "2"}}, before.without(wanted)},
		"held returns the cluster-scoped child of a namespaced parent": {childSet{role: {version: "v1"}},
			union.notOwnable("default")},
		"held returns all children of a parent in another namespace": {union,
			union.notOwnable("other")},
		"held returns nothing for a cluster-scoped parent": {childSet{}, union.notOwnable("")},
		"with on a nil set returns the other set":          {wanted, childSet(nil).mergedWith(wanted)},
		"held leaves out retained children": {childSet{},
			childSet{role: {isRetained: true}}.notOwnable("default")},
		"a forged record changes nothing that is proven": {
			childSet{role: {version: "v1", uid: "2"}},
			childSet{role: {version: "v9", uid: "1",
				isRetained: true}}.withProofs(childSet{role: {version: "v1", uid: "2"}}),
		},
		"without a proof, the record counts": {
			childSet{role: {version: "v9", isRetained: true}},
			childSet{role: {version: "v9", uid: "1", isRetained: true}}.withProofs(nil),
		},
		"the proven uid replaces the recorded one": {
			childSet{web: {uid: "2"}}, childSet{web: {uid: "1"}}.withProofs(childSet{web: {uid: "2"}}),
		},
		"the recorded outcome of a run replaces the proven one": {
			childSet{web: {run: childRun{"new", outcomeFailed}}},
			childSet{web: {run: childRun{"new",
				outcomeFailed}}}.withProofs(childSet{web: {run: childRun{"old", outcomeSucceeded}}}),
		},
		"the outcome of a run stays known without a new declaration": {
			childSet{web: {run: childRun{"d", outcomeSucceeded}}},
			childSet{web: {run: childRun{"d", outcomeSucceeded}}}.
				mergedWith(childSet{web: {run: childRun{digest: "d"}}}).mergedWith(childSet{web: {}}),
		},
		"a changed declaration drops the former outcome": {
			childSet{web: {run: childRun{digest: "e"}}},
			childSet{web: {run: childRun{"d",
				outcomeSucceeded}}}.mergedWith(childSet{web: {run: childRun{digest: "e"}}}),
		},
	} {
		if d := cmp.Diff(tc.want, tc.got, cmp.AllowUnexported(identity{}, childEntry{}, childRun{})); d != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, d)
		}
	}
	if before.containsAll(wanted) || !union.containsAll(wanted) {
		t.Error("has must report whether all children are in the set")
	}
	var uid types.UID = "1"
	if before[web].uid != uid {
		t.Error("with or without changed the set itself")
	}
}

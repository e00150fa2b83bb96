package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

func TestMark(t *testing.T) {
	owned := func(owners ...any) map[string]any {
		return map[string]any{"kind": "ReplicaSet", "metadata": map[string]any{"ownerReferences": owners}}
	}
	deployment := map[string]any{"apiVersion": "any/v1", "kind": "Deployment"}
	tests := map[string]struct {
		reason string
		body   map[string]any
		want   string
	}{
		"NilBody":    {reason: "no object, no owner", want: "fn"},
		"NoMetadata": {reason: "no owners at all", body: map[string]any{"kind": "ReplicaSet"}, want: "fn"},
		"Malformed":  {reason: "not a mapping is no owner", body: owned("Deployment", nil), want: "fn"},
		"OtherOwner": {
			reason: "only deployments copy annotations", body: owned(map[string]any{"kind": "Rollout"}), want: "fn",
		},
		"SecondOwner": {
			reason: "any owner counts, of any API version", body: owned(nil, deployment), want: "fn-ofDRS",
		},
		"KindMalformed": {
			reason: "a kind of another type is no kind", body: map[string]any{"kind": int64(1)}, want: "fn",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, keys.Mark(tc.body, "fn")); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestMarkBound(t *testing.T) {
	const bound = "a.org/handled-uid"
	object := func(kind string, annotations map[string]any) map[string]any {
		return map[string]any{"kind": kind, "metadata": map[string]any{"uid": "1", "annotations": annotations}}
	}
	long := strings.Repeat("K", 63)
	set := object("ReplicaSet", map[string]any{bound + "-ofDRS": "2", bound + "-ofDRS-ofReplicaSet": "1"})
	set["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"kind": "Deployment"}}
	tests := map[string]struct {
		reason string
		body   map[string]any
		bound  string
		want   string
	}{
		"NilBody":  {reason: "no object, no kind", bound: bound, want: "fn"},
		"NoMemory": {reason: "a new object has the usual keys", body: object("A", nil), bound: bound, want: "fn"},
		"Own": {
			reason: "so has a handled one", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "1"}),
		},
		"Copied": {
			reason: "and a copy", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2"}),
		},
		"KeptApart": {
			reason: "the annotation with the kind decides", bound: bound, want: "fn-ofA",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "1"}),
		},
		"CopyRemoved": {
			reason: "memory kept apart does not depend on the copy", bound: bound, want: "fn-ofA",
			body: object("A", map[string]any{bound + "-ofA": "1"}),
		},
		"Both": {
			reason: "the usual keys win: a release that does not read the others has written them", bound: bound,
			want: "fn",
			body: object("A", map[string]any{bound: "1", bound + "-ofA": "1"}),
		},
		"BothCopied": {
			reason: "memory that another object of the kind keeps apart is not believed", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "2"}),
		},
		"OtherKind": {
			reason: "nor that of another kind", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofB": "1"}),
		},
		"Off": {
			reason: "Kopf's formats do not have such keys", want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "1"}),
		},
		"ReplicaSet": {reason: "both marks are used", bound: bound, want: "fn-ofDRS-ofReplicaSet", body: set},
		"LongKind": {
			reason: "the name of the annotation fits", bound: bound, want: "fn-of" + long,
			body: object(long, map[string]any{keys.V2("a.org", "handled-uid-of"+long): "1"}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, keys.MarkBound(tc.body, tc.bound, "fn")); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestMarkedPrefixes(t *testing.T) {
	tests := map[string]struct {
		reason      string
		annotations map[string]any
		want        keys.Prefixes
	}{
		"Nil": {reason: "no annotations, no prefixes"},
		"NoSlash": {
			reason:      "a key without a slash has no prefix",
			annotations: map[string]any{"kopf-managed": "yes", "kopf.zalando.org": "x"},
		},
		"OtherName": {
			reason:      "the name is to be exactly the marker",
			annotations: map[string]any{"a.org/kopf-managed-x": "", "a.org/x/kopf-managed": ""},
		},
		"LookAlike": {
			reason:      "a domain that only ends alike is someone else's",
			annotations: map[string]any{"xkopf.zalando.org/fn": ""},
		},
		"AnyValue": {
			reason: "the marker's value is irrelevant", annotations: map[string]any{"a.org/kopf-managed": nil},
			want: keys.Prefixes{"a.org"},
		},
		"EmptyPrefix": {
			reason: "what is before the slash may be nothing", annotations: map[string]any{"/kopf-managed": ""},
			want: keys.Prefixes{""},
		},
		"KnownDomains": {
			reason:      "Kopf's own domain needs no marker",
			annotations: map[string]any{"kopf.zalando.org/a": "", "x.kopf.zalando.org/b": ""},
			want:        keys.Prefixes{"kopf.zalando.org", "x.kopf.zalando.org"},
		},
		"SortedOnce": {
			reason: "each prefix is there once, in order",
			annotations: map[string]any{
				"b.org/kopf-managed": "", "a.org/kopf-managed": "", "kopf.zalando.org/a": "", "kopf.zalando.org/b": "",
			},
			want: keys.Prefixes{"a.org", "b.org", "kopf.zalando.org"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, keys.MarkedPrefixes(tc.annotations)); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestMarkedPrefixesAllocatesNothing(t *testing.T) {
	annotations := map[string]any{"a.org/x": "", "b.org/y": "", "z": "", "example.org/contact": "x"}
	if got := testing.AllocsPerRun(100, func() { keys.MarkedPrefixes(annotations) }); got != 0 {
		t.Errorf("looking for marks in vain made %v allocations, want none", got)
	}
}

func TestPrefixesCover(t *testing.T) {
	tests := map[string]struct {
		reason string
		key    string
		want   bool
	}{
		"NoSlash":   {reason: "keys without a slash are never covered", key: "a.org"},
		"Subdomain": {reason: "subdomains are not covered", key: "x.a.org/fn"},
		"Longer":    {reason: "the prefix ends at the slash", key: "a.org.uk/fn"},
		"Other":     {reason: "not in the set", key: "b.org/fn"},
		"Exact":     {reason: "all names under the prefix are covered", key: "a.org/fn", want: true},
		"Nameless":  {reason: "even the empty name", key: "a.org/", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (keys.Prefixes{"0.org", "a.org"}).Cover(tc.key); got != tc.want {
				t.Errorf("%s: Cover(%q) = %v", tc.reason, tc.key, got)
			}
			if keys.Prefixes(nil).Cover(tc.key) {
				t.Errorf("the empty set covers %q", tc.key)
			}
		})
	}
}

func TestNeedsMarker(t *testing.T) {
	tests := map[string]struct {
		reason string
		prefix string
		want   bool
	}{
		"Kopf":      {reason: "everyone knows Kopf's own prefix", prefix: "kopf.zalando.org"},
		"Subdomain": {reason: "only exactly that prefix is left out", prefix: "x.kopf.zalando.org", want: true},
		"KopfDomain": {
			reason: "unlike in Kopf, such prefixes are marked, as nobody knows them", prefix: "kopf.example.com",
			want: true,
		},
		"Custom": {reason: "custom prefixes are marked", prefix: "example.com", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keys.NeedsMarker(tc.prefix); got != tc.want {
				t.Errorf("%s: NeedsMarker(%q) = %v", tc.reason, tc.prefix, got)
			}
		})
	}
}

// Anybody who may annotate an object can mark any number of prefixes.
func TestMarkedPrefixesLinear(t *testing.T) {
	growth.Linear(t, 4000, func(size int) func() {
		annotations := make(map[string]any, size)
		for i := range size {
			annotations[fmt.Sprintf("%d.example.org/kopf-managed", i)] = "yes"
		}
		return func() {
			marked := keys.MarkedPrefixes(annotations)
			for key := range annotations {
				if !marked.Cover(key) {
					t.Fatalf("%s is not covered", key)
				}
			}
		}
	})
}

package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
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
		"NilBody": {reason: "a nil object is not marked", want: "fn"},
		"NoMetadata": {reason: "an object without metadata is not marked",
			body: map[string]any{"kind": "ReplicaSet"}, want: "fn"},
		"Malformed": {reason: "a malformed owner does not mark the object",
			body: owned("Deployment", nil), want: "fn"},
		"OtherOwner": {
			reason: "an owner of another kind does not mark the object",
			body:   owned(map[string]any{"kind": "Rollout"}), want: "fn",
		},
		"SecondOwner": {
			reason: "any Deployment among the owners marks the object", body: owned(nil, deployment), want: "fn-ofDRS",
		},
		"KindMalformed": {
			reason: "a malformed kind does not mark the object", body: map[string]any{"kind": int64(1)}, want: "fn",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, keys.MarkReplicaSet(tc.body, "fn")); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestAnnotationKeyOn(t *testing.T) {
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
		"NilBody": {reason: "a nil object has the usual key", bound: bound, want: "fn"},
		"NoMemory": {reason: "an object without records has the usual key",
			body: object("A", nil), bound: bound, want: "fn"},
		"Own": {
			reason: "an object with its own uid has the usual key", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "1"}),
		},
		"Copied": {
			reason: "a copy with the uid of the original has the usual key", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2"}),
		},
		"KeptApart": {
			reason: "an own uid under a key with the kind selects the key with the kind", bound: bound, want: "fn-ofA",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "1"}),
		},
		"CopyRemoved": {
			reason: "the key with the kind does not depend on the copied uid", bound: bound, want: "fn-ofA",
			body: object("A", map[string]any{bound + "-ofA": "1"}),
		},
		"Both": {
			reason: "the usual key wins if both have the own uid, as a release without the other key has written it",
			bound:  bound,
			want:   "fn",
			body:   object("A", map[string]any{bound: "1", bound + "-ofA": "1"}),
		},
		"BothCopied": {
			reason: "a foreign uid under the key with the kind does not count", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "2"}),
		},
		"OtherKind": {
			reason: "the uid under a key with another kind does not count", bound: bound, want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofB": "1"}),
		},
		"Off": {
			reason: "without a bound annotation, as in Kopf's formats, the usual key is used", want: "fn",
			body: object("A", map[string]any{bound: "2", bound + "-ofA": "1"}),
		},
		"ReplicaSet": {reason: "a ReplicaSet of a Deployment gets both marks",
			bound: bound, want: "fn-ofDRS-ofReplicaSet", body: set},
		"LongKind": {
			reason: "a long kind is shortened in both keys", bound: bound,
			want: strings.TrimPrefix(keys.CurrentKey("a.org", "fn-of"+long), "a.org/"),
			body: object(long, map[string]any{keys.CurrentKey("a.org", "handled-uid-of"+long): "1"}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := keys.AnnotationKeyOn(tc.body, "a.org", tc.bound, "fn")
			if delta := cmp.Diff("a.org/"+tc.want, got); delta != "" {
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
		"Nil": {reason: "nil annotations have no prefixes"},
		"NoSlash": {
			reason:      "a key without a slash has no prefix",
			annotations: map[string]any{"kopf-managed": "yes", "kopf.zalando.org": "x"},
		},
		"OtherName": {
			reason:      "only the exact name of the marker counts",
			annotations: map[string]any{"a.org/kopf-managed-x": "", "a.org/x/kopf-managed": ""},
		},
		"LookAlike": {
			reason:      "a domain that only ends like Kopf's does not count",
			annotations: map[string]any{"xkopf.zalando.org/fn": ""},
		},
		"AnyValue": {
			reason: "the value of the marker does not matter", annotations: map[string]any{"a.org/kopf-managed": nil},
			want: keys.Prefixes{"a.org"},
		},
		"EmptyPrefix": {
			reason: "the prefix of a marker may be empty", annotations: map[string]any{"/kopf-managed": ""},
			want: keys.Prefixes{""},
		},
		"KnownDomains": {
			reason:      "Kopf's own domain and its subdomains do not need a marker",
			annotations: map[string]any{"kopf.zalando.org/a": "", "x.kopf.zalando.org/b": ""},
			want:        keys.Prefixes{"kopf.zalando.org", "x.kopf.zalando.org"},
		},
		"SortedOnce": {
			reason: "each prefix is returned once, in order",
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
		t.Errorf("a search without a result made %v allocations, want none", got)
	}
}

func TestPrefixesCover(t *testing.T) {
	tests := map[string]struct {
		reason string
		key    string
		want   bool
	}{
		"NoSlash":   {reason: "a key without a slash is not covered", key: "a.org"},
		"Subdomain": {reason: "a subdomain is not covered", key: "x.a.org/fn"},
		"Longer":    {reason: "a longer domain is not covered", key: "a.org.uk/fn"},
		"Other":     {reason: "another prefix is not covered", key: "b.org/fn"},
		"Exact":     {reason: "a name below the prefix is covered", key: "a.org/fn", want: true},
		"Nameless":  {reason: "the empty name below the prefix is covered", key: "a.org/", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (keys.Prefixes{"0.org", "a.org"}).CoversKey(tc.key); got != tc.want {
				t.Errorf("%s: Cover(%q) = %v", tc.reason, tc.key, got)
			}
			if keys.Prefixes(nil).CoversKey(tc.key) {
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
		"Kopf":      {reason: "Kopf's own prefix does not need a marker", prefix: "kopf.zalando.org"},
		"Subdomain": {reason: "a subdomain of Kopf's prefix needs a marker", prefix: "x.kopf.zalando.org", want: true},
		"KopfDomain": {
			reason: "a prefix that only begins with kopf needs a marker, unlike in Kopf", prefix: "kopf.example.com",
			want: true,
		},
		"Custom": {reason: "a custom prefix needs a marker", prefix: "example.com", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keys.NeedsMarker(tc.prefix); got != tc.want {
				t.Errorf("%s: NeedsMarker(%q) = %v", tc.reason, tc.prefix, got)
			}
		})
	}
}

// TestMarkedPrefixesLinear shows that the cost is linear in the number of markers. Everybody who may annotate an
// object can add any number.
func TestMarkedPrefixesLinear(t *testing.T) {
	growth.Linear(t, 4000, func(size int) func() {
		annotations := make(map[string]any, size)
		for i := range size {
			annotations[fmt.Sprintf("%d.example.org/kopf-managed", i)] = "yes"
		}
		return func() {
			marked := keys.MarkedPrefixes(annotations)
			for key := range annotations {
				if !marked.CoversKey(key) {
					t.Fatalf("%s is not covered", key)
				}
			}
		}
	})
}

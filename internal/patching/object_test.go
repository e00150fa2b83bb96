package patching_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// TestIdentity shows how the uid and the version are read, also from incomplete bodies.
func TestIdentity(t *testing.T) {
	cases := map[string]struct {
		reason       string
		body         map[string]any
		uid, version string
	}{
		"NoBody": {reason: "a nil body, of an object that is gone, has neither uid nor version"},
		"NoMetadata": {reason: "a body without metadata has neither uid nor version",
			body: map[string]any{"spec": map[string]any{}}},
		"Malformed": {reason: "values of other types are ignored",
			body: map[string]any{"metadata": map[string]any{"uid": int64(1), "resourceVersion": map[string]any{}}}},
		"Both": {reason: "a body of a server has uid and version", uid: "u", version: "7",
			body: map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			uid, version := patching.ObjectUID(tc.body), patching.ResourceVersion(tc.body)
			if uid != tc.uid || version != tc.version {
				t.Errorf("%s: got uid %q, version %q, want %q, %q", tc.reason, uid, version, tc.uid, tc.version)
			}
		})
	}
}

// TestNewer shows that versions are compared as numbers, if they are any.
func TestNewer(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Empty":        {reason: "an empty version is not newer", a: "", b: "7"},
		"Incomparable": {reason: "versions that are not numbers are not compared", a: "b", b: "a"},
		"Same":         {reason: "the same version is not newer", a: "7", b: "7"},
		"Older":        {reason: "versions are compared as numbers: 9 is not newer than 10", a: "9", b: "10"},
		"Newer":        {reason: "versions are compared as numbers: 10 is newer than 9", a: "10", b: "9", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := patching.IsNewerVersion(tc.a, tc.b); got != tc.want {
				t.Errorf("%s: Newer(%q, %q) = %t, want %t", tc.reason, tc.a, tc.b, got, tc.want)
			}
		})
	}
}

// TestHasFinalizer shows that malformed lists of finalizers are tolerated.
func TestHasFinalizer(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   map[string]any
		want   bool
	}{
		"NilBody": {reason: "A nil body does not have a finalizer."},
		"NotAList": {
			reason: "A malformed list does not have a finalizer.",
			body:   map[string]any{"metadata": map[string]any{"finalizers": "own"}},
		},
		"Oddities": {
			reason: "Items of other types are ignored.",
			body:   map[string]any{"metadata": map[string]any{"finalizers": []any{int64(1), "own"}}}, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := patching.HasFinalizer(tc.body, "own"); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
			if patching.IsBeingDeleted(tc.body) {
				t.Errorf("%s\na deletion is reported without a timestamp", tc.reason)
			}
		})
	}
}

// TestBlockDeletionWithNilMetadata shows that a nil mapping as metadata is replaced.
func TestBlockDeletionWithNilMetadata(t *testing.T) {
	body := map[string]any{"metadata": map[string]any(nil)}
	if err := patching.BlockDeletion("own")(body); err != nil || !patching.HasFinalizer(body, "own") {
		t.Errorf("a nil mapping must be replaced: got %v with error %v", body, err)
	}
}

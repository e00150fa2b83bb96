package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// failingDiffbase is a storage whose Store fails.
type failingDiffbase struct{ diffbase.Status }

func (failingDiffbase) Store(map[string]any, map[string]any, diffbase.Essence) error {
	return errors.New("no room")
}

// TestWrongStorages shows that wrong storages and settings of persistence are errors of the set-up.
func TestWrongStorages(t *testing.T) {
	long := strings.Repeat("a", 40) + "." + strings.Repeat("b", 40)
	cases := map[string]struct {
		reason      string
		persistence kopf.PersistenceSettings
		want        string
	}{
		"empty diff-base": {
			"a storage that never stores the last-handled configuration is an error",
			kopf.PersistenceSettings{DiffbaseStorage: diffbase.Multi{}},
			"DiffbaseStorage: there are no storages in Multi, so nothing would ever be remembered",
		},
		"nil inside": {
			"a nil storage inside another one is an error",
			kopf.PersistenceSettings{DiffbaseStorage: diffbase.Multi{diffbase.Status{}, nil}}, "the storage is nil",
		},
		"broken": {
			"a storage that cannot store is an error", kopf.PersistenceSettings{DiffbaseStorage: failingDiffbase{}},
			"no room",
		},
		"bad prefix": {
			"an invalid annotation key is an error",
			kopf.PersistenceSettings{DiffbaseStorage: diffbase.Annotations{Prefix: "No Prefix"}},
			"invalid annotation key",
		},
		"identity": {
			"a storage in the identity of the object is an error",
			kopf.PersistenceSettings{DiffbaseStorage: diffbase.Status{Field: diff.Path{"metadata", "name"}}},
			"nothing can be kept at /metadata/name",
		},
		"no memory": {
			"a progress storage that stores nothing is an error",
			kopf.PersistenceSettings{ProgressStorage: progress.Multi{}},
			"ProgressStorage: there are no storages in Multi",
		},
		"read only": {
			"a progress storage that never writes is an error",
			kopf.PersistenceSettings{ProgressStorage: progress.Multi{progress.Status{NoWrite: true}}}, "never writes",
		},
		"no domain": {
			"a prefix that is not a domain name is an error", kopf.PersistenceSettings{AnnotationPrefix: "My Prefix"},
			`Persistence.AnnotationPrefix: invalid annotation prefix "My Prefix"`,
		},
		"long for Kopf": {
			"a prefix that is too long for Kopf's former keys is an error",
			kopf.PersistenceSettings{AnnotationPrefix: long, KopfFormats: true},
			"too long for the annotations that Kopf used once",
		},
		"open quote": {
			"a path with an open quote is an error",
			kopf.PersistenceSettings{IgnoredFields: []string{`metadata.labels."a.b`}},
			"double quotes",
		},
		"empty key": {
			"a path with an empty key is an error", kopf.PersistenceSettings{IgnoredFields: []string{"spec..a"}},
			"a key is empty",
		},
		"ignored twice": {
			"IgnoredFields beside a custom storage are an error",
			kopf.PersistenceSettings{IgnoredFields: []string{"spec.a"}, DiffbaseStorage: diffbase.Status{}},
			"Persistence.IgnoredFields: give the fields to the storage",
		},
		"no finalizer": {
			"a finalizer without a domain is an error", kopf.PersistenceSettings{Finalizer: "mine"},
			`Persistence.Finalizer: "mine": it must be a domain`,
		},
		"no key": {
			"an empty digest key is an error", kopf.PersistenceSettings{DigestKey: []byte{}},
			"Persistence.DigestKey: the key is empty",
		},
		"no former key": {
			"an empty former digest key is an error",
			kopf.PersistenceSettings{DigestKey: []byte("x"), FormerDigestKeys: [][]byte{[]byte("y"), nil}},
			"Persistence.FormerDigestKeys[1]: the key is empty",
		},
		"former keys alone": {
			"former digest keys without a present one are an error",
			kopf.PersistenceSettings{FormerDigestKeys: [][]byte{[]byte("y")}}, "there is no DigestKey",
		},
		"id at its place": {
			"an id whose record would replace the last-handled configuration is an error",
			kopf.PersistenceSettings{DiffbaseStorage: diffbase.Annotations{Prefix: "test.example.org", Key: "id"}},
			`the record would be at /metadata/annotations/test.example.org~1id`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{Persistence: c.persistence})
			kopf.For(op, &Widget{}).OnCreate("id", succeed)
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\nwant %q in the error, got: %v", c.reason, c.want, err)
			}
		})
	}
}

// TestRightStorages shows how the settings of persistence become options of the engine.
func TestRightStorages(t *testing.T) {
	const name, mine = "test.example.org", "mine.example.org"
	long := strings.Repeat("a", 40) + "." + strings.Repeat("b", 40)
	multi := diffbase.Multi{diffbase.Status{}, diffbase.Annotations{Prefix: name}}
	ignored := []diff.Path{{"spec", "size"}, {"metadata", "labels", "a.b/c"}}
	ours := reconcilers.Digests{Limit: 100 * 1024, Secrets: true}
	cases := map[string]struct {
		reason   string
		settings kopf.PersistenceSettings
		want     reconcilers.Options
	}{
		"prefix": {"all annotations have the given prefix", kopf.PersistenceSettings{AnnotationPrefix: mine},
			reconcilers.Options{
				Settings: reconcilers.Settings{
					Prefix:      mine,
					BoundTo:     mine + "/handled-uid",
					Finalizer:   name + "/finalizer",
					Digests:     ours,
					Diffbase:    diffbase.Annotations{Prefix: mine, WithoutV1: true, Bound: mine + "/handled-uid"},
					Progress:    progress.Annotations{Prefix: mine, WithoutV1: true, Bound: mine + "/handled-uid"},
					CompactSubs: true,
				},
			}},
		"long prefix": {"without Kopf's former keys, a long prefix is accepted",
			kopf.PersistenceSettings{AnnotationPrefix: long}, reconcilers.Options{
				Settings: reconcilers.Settings{
					Prefix:      long,
					BoundTo:     long + "/handled-uid",
					Finalizer:   name + "/finalizer",
					Digests:     ours,
					Diffbase:    diffbase.Annotations{Prefix: long, WithoutV1: true, Bound: long + "/handled-uid"},
					Progress:    progress.Annotations{Prefix: long, WithoutV1: true, Bound: long + "/handled-uid"},
					CompactSubs: true,
				},
			}},
		"Kopf's formats": {"Kopf's formats can have other names, and then copies are not trusted",
			kopf.PersistenceSettings{
				AnnotationPrefix: mine, Finalizer: mine + "/fin", KopfFormats: true,
			}, reconcilers.Options{
				Settings: reconcilers.Settings{
					Prefix:        mine,
					BoundTo:       mine + "/handled-uid",
					Finalizer:     mine + "/fin",
					Diffbase:      diffbase.Annotations{Prefix: mine},
					Progress:      progress.Smart{Prefix: mine},
					KopfTexts:     true,
					KopfDeletions: true,
				},
			}},
		"ignored": {"the default storage leaves out the ignored fields", kopf.PersistenceSettings{
			IgnoredFields: []string{"spec.size", `metadata.labels."a.b/c"`}, TrustCopies: true,
		}, reconcilers.Options{
			Settings: reconcilers.Settings{
				Prefix:      name,
				Finalizer:   name + "/finalizer",
				Digests:     ours,
				Diffbase:    diffbase.Annotations{Prefix: name, IgnoredFields: ignored, WithoutV1: true},
				Progress:    progress.Annotations{Prefix: name, WithoutV1: true},
				CompactSubs: true,
			},
		}},
		"own": {"custom storages are used unchanged", kopf.PersistenceSettings{
			DiffbaseStorage: multi, ProgressStorage: progress.Status{Name: "x"},
			DigestKey: []byte("k"), FormerDigestKeys: [][]byte{[]byte("f")},
		}, reconcilers.Options{
			Settings: reconcilers.Settings{
				Prefix:    name,
				BoundTo:   name + "/handled-uid",
				Finalizer: name + "/finalizer",
				Digests: reconcilers.Digests{
					Limit:   100 * 1024,
					Secrets: true,
					Keys:    [][]byte{[]byte("k"), []byte("f")},
				},
				Diffbase: multi,
				Progress: progress.Status{Name: "x"},
			},
		}},
		"own of the same kind": {"a custom storage keeps the records of sub-handlers separate",
			kopf.PersistenceSettings{
				ProgressStorage: progress.Annotations{Prefix: name, WithoutV1: true},
			}, reconcilers.Options{
				Settings: reconcilers.Settings{
					Prefix:    name,
					BoundTo:   name + "/handled-uid",
					Finalizer: name + "/finalizer",
					Digests:   ours,
					Diffbase:  diffbase.Annotations{Prefix: name, WithoutV1: true},
					Progress:  progress.Annotations{Prefix: name, WithoutV1: true},
				},
			}},
	}
	for label, c := range cases {
		t.Run(label, func(t *testing.T) {
			got := engineOptions(t, kopf.New(name, kopf.Settings{Persistence: c.settings}))
			if d := cmp.Diff(withDefaults(c.want), got); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestIDsInTheStatus shows that ids that would share an annotation are accepted for a storage in the status.
func TestIDsInTheStatus(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{
		Persistence: kopf.PersistenceSettings{ProgressStorage: progress.Status{}},
	})
	widgets := kopf.For(op, &Widget{})
	widgets.OnCreate("a/b", succeed)
	widgets.OnUpdate("a.b", succeed)
	if _, err := kopf.Plan(op, newScheme(t)); err != nil {
		t.Errorf("in the status, the two ids must be two keys: %v", err)
	}
}

// TestRedacted shows that a selection has the redacted paths of the selections that it is derived from.
func TestRedacted(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	secret := widgets.Redacted("spec.extra.password", `metadata.annotations."a.b/c"`).
		MatchingLabels("a=b").Redacted("spec.extra.token")
	secret.OnCreate("a", succeed)
	widgets.OnUpdate("b", succeed)
	plan := planOf(t, op)
	want := []diff.Path{
		{"spec", "extra", "password"}, {"metadata", "annotations", "a.b/c"}, {"spec", "extra", "token"},
	}
	if d := cmp.Diff(want, plan[0].Handler.RedactedPaths); d != "" {
		t.Errorf("the redacted paths of a derived selection: -want, +got:\n%s", d)
	}
	if len(plan[1].Handler.RedactedPaths) > 0 {
		t.Error("a derived selection must not change the original one")
	}
	widgets.Redacted(`spec."a"b`, "").OnDelete("c", succeed)
	if _, err := kopf.Plan(op, newScheme(t)); err == nil || strings.Count(err.Error(), "Redacted: invalid path") != 2 {
		t.Errorf("both invalid paths must be reported: %v", err)
	}
}

// TestHandlersOfDigests shows that the diff of a redacted field has its path, but no values: only a digest is stored.
func TestHandlersOfDigests(t *testing.T) {
	redaction := cause.Redaction{Paths: []diff.Path{{"spec", "owner"}}}
	before, after := body(
		map[string]any{"owner": "ann", "size": int64(1)},
	), body(map[string]any{"owner": "bob", "size": int64(1)})
	var stored diffbase.Essence
	for form, err := range redaction.StoredForms(after, diffbase.Essence{"spec": before["spec"]}) {
		if err != nil {
			t.Fatal(err)
		}
		stored = form
		break
	}
	present := diffbase.Essence{"spec": after["spec"]}
	old, veiled := redaction.RestoreEssence(after, stored, present)
	hidden := func(a *execution.Attempt) {
		a.Call.Cause = cause.Detect(cause.Observation{Body: after, Old: old, New: present, VeiledPaths: veiled})
	}
	want := kopf.Diff{{Op: diff.Change, Path: diff.Path{"spec", "owner"}}}

	typed := kopf.New("test.example.org")
	kopf.For(typed, &Widget{}).OnUpdate("id", func(_ context.Context, c *Change) error {
		if c.Old.Spec.Owner != "" || c.Old.Spec.Size != 1 || c.Object.Spec.Owner != "bob" {
			t.Errorf("the changed field must be zero, and all others known: %+v", c.Old.Spec)
		}
		if d := cmp.Diff(want, c.Diff); d != "" {
			t.Errorf("the diff must have paths without values: -want, +got:\n%s", d)
		}
		return nil
	})
	raw := kopf.New("raw.example.org")
	kopf.ForResource(
		raw, "test.example.org/v1", "widgets",
	).OnUpdate("id", func(_ context.Context, c *kopf.Change[*unstructured.Unstructured]) error {
		if d := cmp.Diff(map[string]any{"spec": map[string]any{"size": int64(1)}}, c.Old.Object); d != "" {
			t.Errorf("the changed field must be absent, and all others known: -want, +got:\n%s", d)
		}
		return nil
	})
	for _, op := range []*kopf.Operator{typed, raw} {
		if a := call(t, op, after, old, hidden); a.Outcome.Err != nil {
			t.Error(a.Outcome.Err)
		}
	}
}

// panickingDiffbase is a storage whose methods all panic.
type panickingDiffbase struct{ *diffbase.Annotations }

type panickingProgress struct{ *progress.Annotations }

// TestStoragesThatPanicAreMistakes shows that a panic of a storage is one of the mistakes that registration reports.
func TestStoragesThatPanicAreMistakes(t *testing.T) {
	op := kopf.New("test.example.org", kopf.Settings{
		Persistence: kopf.PersistenceSettings{DiffbaseStorage: panickingDiffbase{},
			ProgressStorage: panickingProgress{}},
	})
	kopf.For(op, &Widget{}).OnCreate("a", succeed)
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("a storage that panics must be an error")
	}
	for _, want := range []string{
		"DiffbaseStorage: storing an empty essence: Store of the storage kopf_test.panickingDiffbase: panic: ",
		"ProgressStorage: storing a record",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

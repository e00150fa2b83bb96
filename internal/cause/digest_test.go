package cause_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

var (
	body      = object{"metadata": object{"uid": "uid-1"}}
	redactAll = cause.Redaction{Paths: []diff.Path{nil}}
)

// forms returns all stored forms of an essence, as JSON texts and as they are read back from the object.
func forms(t *testing.T, r cause.Redaction, essence diffbase.Essence) (texts []string, stored []diffbase.Essence) {
	t.Helper()
	for form, err := range r.StoredForms(body, essence) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := asciijson.Marshal(form)
		if err != nil {
			t.Fatal(err)
		}
		texts, stored = append(texts, text), append(stored, parsed(t, text))
	}
	return texts, stored
}

func parsed(t *testing.T, text string) diffbase.Essence {
	t.Helper()
	essence := diffbase.Essence{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &essence); err != nil {
		t.Fatal(err)
	}
	return essence
}

func detect(r cause.Redaction, stored, present diffbase.Essence) *cause.Cause {
	old, veiled := r.RestoreEssence(body, stored, present)
	return cause.Detect(cause.Observation{Body: body, Old: old, New: present, VeiledPaths: veiled})
}

func TestFormsFail(t *testing.T) {
	for name, r := range map[string]cause.Redaction{"Whole": redactAll, "Limited": {Limit: 1}} {
		for form, err := range r.StoredForms(body, diffbase.Essence{"spec": math.NaN()}) {
			if err == nil {
				t.Errorf("%s: a value that is not JSON must not have a digest: got %v", name, form)
			}
			break
		}
	}
}

func TestForms(t *testing.T) {
	essence := diffbase.Essence{
		"spec": object{"size": int64(1), "password": "hunter2", "users": []any{object{"password": "swordfish"}}},
	}
	tests := map[string]struct {
		reason        string
		redaction     cause.Redaction
		shown, hidden []string
	}{
		"Plain": {
			"without a redaction, all values are stored", cause.Redaction{}, []string{"hunter2", "swordfish"},
			[]string{"$digests"},
		},
		"Value": {
			"only the secret value is stored as a digest", cause.Redaction{Paths: []diff.Path{{"spec", "password"}}},
			[]string{`"size":1`, "swordfish", `"$digests":[["spec","password"]]`}, []string{"hunter2"},
		},
		"Stanza": {
			"the values of a secret mapping are digests, its keys are not",
			cause.Redaction{Paths: []diff.Path{{"spec"}}},
			[]string{`"size":`, `"$digests":[["spec"]]`}, []string{`"size":1`, "hunter2", "swordfish"},
		},
		"List": {
			"a path into a list redacts the whole list",
			cause.Redaction{Paths: []diff.Path{{"spec", "users", "password"}}},
			[]string{"hunter2", `"$digests":[["spec","users"]]`}, []string{"swordfish"},
		},
		"Beneath": {
			"a path into a scalar redacts it", cause.Redaction{Paths: []diff.Path{{"spec", "password", "value"}}},
			[]string{"swordfish"}, []string{"hunter2"},
		},
		"Nowhere": {
			"an absent field is not listed in the digests", cause.Redaction{Paths: []diff.Path{{"spec", "other"}}},
			[]string{"hunter2"}, []string{"$digests"},
		},
		"Large": {
			"above the limit, all values are stored as digests", cause.Redaction{Limit: 20},
			[]string{`"$digests":[[]]`, `"users":`}, []string{"hunter2", `"size":1`},
		},
		"Small": {
			"within the limit, values are stored", cause.Redaction{Limit: 200}, []string{"hunter2"},
			[]string{"$digests"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			texts, stored := forms(t, tc.redaction, essence)
			for _, text := range tc.shown {
				if !strings.Contains(texts[0], text) {
					t.Errorf("%s: %s is missing: %s", tc.reason, text, texts[0])
				}
			}
			for _, text := range tc.hidden {
				if strings.Contains(texts[0], text) {
					t.Errorf("%s: %s is stored: %s", tc.reason, text, texts[0])
				}
			}
			for i, form := range stored {
				if c := detect(tc.redaction, form, essence); len(c.Diff) > 0 {
					t.Errorf("%s: form %d differs from its own essence: %v", tc.reason, i, c.Diff)
				}
			}
		})
	}
}

func TestRecall(t *testing.T) {
	secret := cause.Redaction{Paths: []diff.Path{{"spec", "a"}}}
	present := diffbase.Essence{"spec": object{"a": int64(1), "b": "x"}}
	_, stored := forms(t, secret, present)
	tests := map[string]struct {
		reason                   string
		redaction                cause.Redaction
		stored, present, wantOld diffbase.Essence
		wantDiff                 diff.Diff
	}{
		"Never": {reason: "an object that was never handled has no old essence; secrets are not shown",
			redaction: secret, present: present,
			wantDiff: diff.Diff{{Op: diff.Add, New: object{"spec": object{"a": nil, "b": "x"}}}}},
		"Changed": {reason: "a changed secret is in the diff, without values", redaction: secret, stored: stored[0],
			present: diffbase.Essence{
				"spec": object{"a": int64(2), "b": "y"},
			}, wantOld: diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "a"}},
				{Op: diff.Change, Path: diff.Path{"spec", "b"}, Old: "x", New: "y"}}},
		"Removed": {reason: "a removed mapping is shown without its secrets", redaction: secret, stored: stored[0],
			present:  diffbase.Essence{},
			wantOld:  diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Remove, Path: diff.Path{"spec"}, Old: object{"a": nil, "b": "x"}}}},
		"Redacted": {
			reason: "a field that becomes secret is not a change", redaction: secret, stored: present, present: present,
			wantOld: present,
		},
		"RedactedAndChanged": {reason: "a value stored before its redaction is not shown", redaction: secret,
			stored: present,
			present: diffbase.Essence{
				"spec": object{"a": int64(2), "b": "x"},
			}, wantOld: diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "a"}}}},
		"Published": {
			reason: "a field that is public again is not a change", stored: stored[0], present: present,
			wantOld: present,
		},
		"AllDigests": {
			reason: "digests of all values show the place of the change", stored: stored[1],
			present:  diffbase.Essence{"spec": object{"a": int64(1), "b": "y"}},
			wantOld:  diffbase.Essence{"spec": object{"a": int64(1)}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "b"}}},
		},
		"OneDigest": {
			reason: "one digest shows only that something changed", stored: stored[2],
			present: diffbase.Essence{"spec": "y"},
			wantOld: diffbase.Essence{}, wantDiff: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec"}, New: "y"}},
		},
		"Emptied": {
			reason: "removing the whole content is a change, too", stored: stored[2], present: diffbase.Essence{},
			wantOld: diffbase.Essence{}, wantDiff: diff.Diff{{Op: diff.Remove, Path: diff.Path{"$digest"}}},
		},
		"NotPresentable": {
			reason: "a value that cannot be compared counts as changed", stored: stored[2],
			present: diffbase.Essence{"spec": math.Inf(1)}, wantOld: diffbase.Essence{},
			wantDiff: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec"}, New: math.Inf(1)}},
		},
		"Users": {
			reason: "a key with the name of the digests but another type belongs to the user",
			stored: diffbase.Essence{"$digests": []any{"a"}}, present: present,
			wantOld: diffbase.Essence{"$digests": []any{"a"}},
			wantDiff: diff.Diff{
				{Op: diff.Add, Path: diff.Path{"spec"}, New: object{"a": int64(1), "b": "x"}},
				{Op: diff.Remove, Path: diff.Path{"$digests"}, Old: []any{"a"}},
			},
		},
		"SameNumber": {
			reason: "a whole float equals the integer, as in all comparisons", redaction: secret, stored: stored[0],
			present: diffbase.Essence{"spec": object{"a": 1.0, "b": "x"}},
			wantOld: diffbase.Essence{"spec": object{"a": 1.0, "b": "x"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := detect(tc.redaction, tc.stored, tc.present)
			if d := cmp.Diff(tc.wantOld, cause.WithoutHidden(c.Old)); d != "" {
				t.Errorf("%s: old: -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(tc.wantDiff, c.Diff); d != "" {
				t.Errorf("%s: diff: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestHiddenIsNull(t *testing.T) {
	_, stored := forms(t, redactAll, diffbase.Essence{"spec": "x"})
	c := detect(redactAll, stored[0], diffbase.Essence{"spec": "y"})
	if text, err := json.Marshal(c.Old); err != nil || string(text) != `{"spec":null}` {
		t.Errorf("a hidden value must be encoded as null: %s, %v", text, err)
	}
	if text := fmt.Sprint(c.Old); text != "map[spec:(redacted)]" {
		t.Errorf("a hidden value must be printed as redacted: %s", text)
	}
}

func TestDigestsOfEqualValuesDiffer(t *testing.T) {
	essence := diffbase.Essence{"spec": object{"a": "same", "b": "same"}}
	_, stored := forms(t, redactAll, essence)
	here, _ := stored[0]["spec"].(object)
	if here["a"] == here["b"] {
		t.Error("equal values of two fields must have different digests")
	}
	for form, err := range redactAll.StoredForms(object{"metadata": object{"uid": "uid-2"}}, essence) {
		if err != nil {
			t.Fatal(err)
		}
		if there, _ := form["spec"].(object); there["a"] == here["a"] {
			t.Error("equal values of two objects must have different digests")
		}
		break
	}
}

func TestKeys(t *testing.T) {
	essence := diffbase.Essence{"spec": "x"}
	keyed := func(keys ...string) cause.Redaction {
		r := redactAll
		for _, key := range keys {
			r.Keys = append(r.Keys, []byte(key))
		}
		return r
	}
	tests := map[string]struct {
		reason        string
		before, after cause.Redaction
		same          bool
	}{
		"Lost":    {"without the former key, equal values count as changed", keyed("k1"), keyed("k2"), false},
		"Dropped": {"without any key, equal values count as changed", keyed("k1"), redactAll, false},
		"Begun":   {"digests made with the uid are always compared", redactAll, keyed("k1"), true},
		"Rotated": {"digests made with a former key are compared", keyed("k1"), keyed("k2", "k1"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, stored := forms(t, tc.before, essence)
			for i, form := range []diffbase.Essence{stored[0], stored[2]} {
				if same := len(detect(tc.after, form, essence).Diff) == 0; same != tc.same {
					t.Errorf("%s: form %d: got %v", tc.reason, i, same)
				}
			}
		})
	}
}

// random returns a JSON value out of few, so that equal ones are frequent.
func random(r *rand.Rand, depth int) any {
	scalars := []any{
		nil, true, false, "", "x", "1", int64(0), int64(1), 1.0, 1.5, int64(1) << 60, float64(1 << 60),
		math.Copysign(0, -1),
	}
	kind := r.IntN(len(scalars) + 4)
	switch {
	case kind < len(scalars):
		return scalars[kind]
	case kind == len(scalars) || depth == 0:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = random(r, max(0, depth-1))
		}
		return list
	}
	return randomMapping(r, depth-1)
}

func randomMapping(r *rand.Rand, depth int) object {
	mapping := object{}
	for range r.IntN(4) {
		mapping[string(rune('a'+r.IntN(4)))] = random(r, depth)
	}
	return mapping
}

func randomPaths(r *rand.Rand) []diff.Path {
	paths := make([]diff.Path, r.IntN(3))
	for i := range paths {
		for range r.IntN(4) {
			paths[i] = append(paths[i], string(rune('a'+r.IntN(4))))
		}
	}
	return paths
}

// operationsOf returns the operations and paths of a diff, without values.
func operationsOf(d diff.Diff) []string {
	items := make([]string, 0, len(d))
	for _, item := range d {
		items = append(items, string(item.Op)+" "+item.Path.String())
	}
	slices.Sort(items)
	return items
}

// TestDigestsDifferLikeValues compares the diffs of digests with the diffs of values, for all stored forms and for
// random redactions before and after the change.
func TestDigestsDifferLikeValues(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	source := rand.New(rand.NewPCG(1, 2))
	for n := range 5_000 {
		before, after := randomMapping(source, 3), randomMapping(source, 3)
		if n%3 == 0 {
			after = before
		}
		then, now := cause.Redaction{Paths: randomPaths(source)}, cause.Redaction{Paths: randomPaths(source)}
		plain := diff.Compute(before, after)
		_, stored := forms(t, then, before)
		for i, form := range stored[:2] {
			c := detect(now, form, after)
			if d := cmp.Diff(operationsOf(plain), operationsOf(c.Diff)); d != "" {
				t.Fatalf(
					"%v to %v, form %d, then %v, now %v: -plain, +digested:\n%s", before, after, i, then.Paths,
					now.Paths, d,
				)
			}
			// A reconstructed essence can be stored again, as the other one of two configurations.
			_, again := forms(t, now, c.Old)
			if d := cmp.Diff(operationsOf(plain), operationsOf(detect(now, again[i], after).Diff)); d != "" {
				t.Fatalf("%v to %v, form %d stored again: -plain, +digested:\n%s", before, after, i, d)
			}
		}
		if one := len(detect(now, stored[2], after).Diff) == 0; one != diff.Equal(before, after) && len(plain) > 0 {
			t.Fatalf("%v to %v: one digest says equal: %v", before, after, one)
		}
	}
}

// TestSecretsAreNowhere searches for a secret in all stored and shown texts.
func TestSecretsAreNowhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	source := rand.New(rand.NewPCG(3, 4))
	const old, present = "old-secret", "new-secret"
	redaction := cause.Redaction{Paths: []diff.Path{{"s"}}}
	for range 2_000 {
		before, after := randomMapping(source, 2), randomMapping(source, 2)
		before["s"] = object{"k": []any{old}, "l": object{"m": old}, "n": random(source, 1)}
		after["s"] = object{"k": []any{present}, "l": present, "o": random(source, 1)}
		texts, stored := forms(t, redaction, before)
		for _, form := range append(stored[:2:2], before, nil) {
			c := detect(redaction, form, after)
			shown, err := json.Marshal([]any{c.Diff, c.Old})
			if err != nil {
				t.Fatal(err)
			}
			again := []string{}
			if c.Old != nil {
				again, _ = forms(t, redaction, c.Old)
			}
			everything := strings.Join(append(append(texts, again...), string(shown), fmt.Sprint(c.Diff, c.Old)), "\n")
			if strings.Contains(everything, "secret") {
				t.Fatalf("no secret may be stored or shown:\n%s", everything)
			}
		}
	}
}

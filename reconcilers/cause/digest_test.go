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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

var (
	body  = object{"metadata": object{"uid": "uid-1"}}
	whole = cause.Redaction{Paths: []diff.Path{nil}}
)

// forms are all that can be stored, as they come back from the object: as JSON.
func forms(t *testing.T, r cause.Redaction, essence diffbase.Essence) (texts []string, stored []diffbase.Essence) {
	t.Helper()
	for form, err := range r.Forms(body, essence) {
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

// seen is the cause as handlers get it: what is stored, compared with the present essence.
func seen(r cause.Redaction, stored, present diffbase.Essence) *cause.Cause {
	old, veiled := r.Recall(body, stored, present)
	return cause.Detect(cause.Observation{Body: body, Old: old, New: present, Veiled: veiled})
}

func TestFormsFail(t *testing.T) {
	for name, r := range map[string]cause.Redaction{"Whole": whole, "Limited": {Limit: 1}} {
		for form, err := range r.Forms(body, diffbase.Essence{"spec": math.NaN()}) {
			if err == nil {
				t.Errorf("%s: what is no JSON has no digest: got %v", name, form)
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
			"without a redaction, all is stored as it is", cause.Redaction{}, []string{"hunter2", "swordfish"},
			[]string{"$digests"},
		},
		"Value": {
			"one value is secret, others are not", cause.Redaction{Paths: []diff.Path{{"spec", "password"}}},
			[]string{`"size":1`, "swordfish", `"$digests":[["spec","password"]]`}, []string{"hunter2"},
		},
		"Stanza": {
			"all in it is secret, its keys are not", cause.Redaction{Paths: []diff.Path{{"spec"}}},
			[]string{`"size":`, `"$digests":[["spec"]]`}, []string{`"size":1`, "hunter2", "swordfish"},
		},
		"List": {
			"a path through a list means the list: rather too much than too little",
			cause.Redaction{Paths: []diff.Path{{"spec", "users", "password"}}},
			[]string{"hunter2", `"$digests":[["spec","users"]]`}, []string{"swordfish"},
		},
		"Beneath": {
			"so it is with a path through a scalar", cause.Redaction{Paths: []diff.Path{{"spec", "password", "value"}}},
			[]string{"swordfish"}, []string{"hunter2"},
		},
		"Nowhere": {
			"what is not there needs no mention", cause.Redaction{Paths: []diff.Path{{"spec", "other"}}},
			[]string{"hunter2"}, []string{"$digests"},
		},
		"Large": {
			"beyond the limit, nothing is stored by value", cause.Redaction{Limit: 20},
			[]string{`"$digests":[[]]`, `"users":`}, []string{"hunter2", `"size":1`},
		},
		"Small": {
			"within the limit, everything is", cause.Redaction{Limit: 200}, []string{"hunter2"}, []string{"$digests"},
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
				if c := seen(tc.redaction, form, essence); len(c.Diff) > 0 {
					t.Errorf("%s: form %d differs from what it was made of: %v", tc.reason, i, c.Diff)
				}
			}
		})
	}
}

func TestRecall(t *testing.T) {
	secret := cause.Redaction{Paths: []diff.Path{{"spec", "a"}}}
	present := diffbase.Essence{"spec": object{"a": int64(1), "b": "x"}}
	_, stored := forms(t, secret, present)
	former := diffbase.Essence{"$sha256": "62008b1f63d4abbfcde062ff4e77a14cca447aeac4c0b7aab6669c80acc82642"}
	tests := map[string]struct {
		reason                   string
		redaction                cause.Redaction
		stored, present, wantOld diffbase.Essence
		wantDiff                 diff.Diff
	}{
		"Never": {reason: "never handled stays never handled; but what is new and secret is not shown",
			redaction: secret, present: present,
			wantDiff: diff.Diff{{Op: diff.Add, New: object{"spec": object{"a": nil, "b": "x"}}}}},
		"Changed": {reason: "that it changed is known, the values are not shown", redaction: secret, stored: stored[0],
			present: diffbase.Essence{
				"spec": object{"a": int64(2), "b": "y"},
			}, wantOld: diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "a"}},
				{Op: diff.Change, Path: diff.Path{"spec", "b"}, Old: "x", New: "y"}}},
		"Removed": {reason: "so it is if a whole stanza is gone", redaction: secret, stored: stored[0],
			present:  diffbase.Essence{},
			wantOld:  diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Remove, Path: diff.Path{"spec"}, Old: object{"a": nil, "b": "x"}}}},
		"Redacted": {
			reason: "what becomes secret is no change", redaction: secret, stored: present, present: present,
			wantOld: present,
		},
		"RedactedAndChanged": {reason: "what was stored before it became secret is not shown either", redaction: secret,
			stored: present,
			present: diffbase.Essence{
				"spec": object{"a": int64(2), "b": "x"},
			}, wantOld: diffbase.Essence{"spec": object{"b": "x"}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "a"}}}},
		"Published": {
			reason: "what is secret no more is no change", stored: stored[0], present: present, wantOld: present,
		},
		"AllDigests": {
			reason: "digests say where the change is", stored: stored[1],
			present:  diffbase.Essence{"spec": object{"a": int64(1), "b": "y"}},
			wantOld:  diffbase.Essence{"spec": object{"a": int64(1)}},
			wantDiff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "b"}}},
		},
		"OneDigest": {
			reason: "one digest says that there is one", stored: stored[2], present: diffbase.Essence{"spec": "y"},
			wantOld: diffbase.Essence{}, wantDiff: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec"}, New: "y"}},
		},
		"Emptied": {
			reason: "nothing to be added is a change as well", stored: stored[2], present: diffbase.Essence{},
			wantOld: diffbase.Essence{}, wantDiff: diff.Diff{{Op: diff.Remove, Path: diff.Path{"$digest"}}},
		},
		"NotPresentable": {
			reason: "what cannot be compared is not taken for the same", stored: stored[2],
			present: diffbase.Essence{"spec": math.Inf(1)}, wantOld: diffbase.Essence{},
			wantDiff: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec"}, New: math.Inf(1)}},
		},
		"Former": {
			reason: "the digest of former versions is known", stored: former, present: diffbase.Essence{"spec": "x"},
			wantOld: diffbase.Essence{"spec": "x"},
		},
		"FormerChanged": {reason: "so is a change since then", stored: former, present: diffbase.Essence{"spec": "y"},
			wantOld:  diffbase.Essence{},
			wantDiff: diff.Diff{{Op: diff.Add, Path: diff.Path{"spec"}, New: "y"}}},
		"Users": {
			reason: "a key of the same name with something else is the user's",
			stored: diffbase.Essence{"$digests": []any{"a"}}, present: present,
			wantOld: diffbase.Essence{"$digests": []any{"a"}},
			wantDiff: diff.Diff{
				{Op: diff.Add, Path: diff.Path{"spec"}, New: object{"a": int64(1), "b": "x"}},
				{Op: diff.Remove, Path: diff.Path{"$digests"}, Old: []any{"a"}},
			},
		},
		"SameNumber": {
			reason: "a whole float is an integer, as in all comparisons", redaction: secret, stored: stored[0],
			present: diffbase.Essence{"spec": object{"a": 1.0, "b": "x"}},
			wantOld: diffbase.Essence{"spec": object{"a": 1.0, "b": "x"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := seen(tc.redaction, tc.stored, tc.present)
			if d := cmp.Diff(tc.wantOld, cause.Bare(c.Old)); d != "" {
				t.Errorf("%s: old: -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(tc.wantDiff, c.Diff); d != "" {
				t.Errorf("%s: diff: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestHiddenIsNull(t *testing.T) {
	_, stored := forms(t, whole, diffbase.Essence{"spec": "x"})
	c := seen(whole, stored[0], diffbase.Essence{"spec": "y"})
	if text, err := json.Marshal(c.Old); err != nil || string(text) != `{"spec":null}` {
		t.Errorf("what is decoded from it must be zero: %s, %v", text, err)
	}
	if text := fmt.Sprint(c.Old); text != "map[spec:(redacted)]" {
		t.Errorf("people must see why: %s", text)
	}
}

func TestDigestsOfEqualValuesDiffer(t *testing.T) {
	essence := diffbase.Essence{"spec": object{"a": "same", "b": "same"}}
	_, stored := forms(t, whole, essence)
	here, _ := stored[0]["spec"].(object)
	if here["a"] == here["b"] {
		t.Error("equal values of two places have one digest")
	}
	for form, err := range whole.Forms(object{"metadata": object{"uid": "uid-2"}}, essence) {
		if err != nil {
			t.Fatal(err)
		}
		if there, _ := form["spec"].(object); there["a"] == here["a"] {
			t.Error("equal values of two objects have one digest")
		}
		break
	}
}

func TestKeys(t *testing.T) {
	essence := diffbase.Essence{"spec": "x"}
	keyed := func(keys ...string) cause.Redaction {
		r := whole
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
		"Lost":    {"without the key, nothing can be compared", keyed("k1"), keyed("k2"), false},
		"Dropped": {"so it is without any", keyed("k1"), whole, false},
		"Begun":   {"the uid is always tried", whole, keyed("k1"), true},
		"Rotated": {"former keys are tried as well", keyed("k1"), keyed("k2", "k1"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, stored := forms(t, tc.before, essence)
			for i, form := range []diffbase.Essence{stored[0], stored[2]} {
				if same := len(seen(tc.after, form, essence).Diff) == 0; same != tc.same {
					t.Errorf("%s: form %d: got %v", tc.reason, i, same)
				}
			}
		})
	}
}

// random is a JSON value out of few, so that equal ones are frequent.
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

// bare is what remains of a diff without values.
func bare(d diff.Diff) []string {
	items := make([]string, 0, len(d))
	for _, item := range d {
		items = append(items, string(item.Op)+" "+item.Path.String())
	}
	slices.Sort(items)
	return items
}

// TestDigestsTellAsMuchAsValues compares all that can be stored, by all that may have been redacted then and now, with
// the essences themselves.
func TestDigestsTellAsMuchAsValues(t *testing.T) {
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
			c := seen(now, form, after)
			if d := cmp.Diff(bare(plain), bare(c.Diff)); d != "" {
				t.Fatalf(
					"%v to %v, form %d, then %v, now %v: -plain, +digested:\n%s", before, after, i, then.Paths,
					now.Paths, d,
				)
			}
			// What was recalled may be stored once more, as the other of two configurations.
			_, again := forms(t, now, c.Old)
			if d := cmp.Diff(bare(plain), bare(seen(now, again[i], after).Diff)); d != "" {
				t.Fatalf("%v to %v, form %d stored again: -plain, +digested:\n%s", before, after, i, d)
			}
		}
		if one := len(seen(now, stored[2], after).Diff) == 0; one != diff.Equal(before, after) && len(plain) > 0 {
			t.Fatalf("%v to %v: one digest says equal: %v", before, after, one)
		}
	}
}

// TestSecretsAreNowhere looks for a secret in all that is stored and shown.
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
			c := seen(redaction, form, after)
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
				t.Fatalf("a secret got out:\n%s", everything)
			}
		}
	}
}

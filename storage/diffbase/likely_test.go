package diffbase_test

import (
	"reflect"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// inStatus is somebody's own storage around a known one: it keeps the essence elsewhere.
type inStatus struct{ diffbase.Annotations }

func (inStatus) Fetch(body map[string]any) (diffbase.Essence, error) {
	status, _ := body["status"].(map[string]any)
	return status, nil
}

// gives tells whether the storage gives the essence itself, unread.
func gives(storage diffbase.Storage, body map[string]any, essence diffbase.Essence) bool {
	found, err := diffbase.FetchLikely(storage, body, essence)
	return err == nil && found != nil && reflect.ValueOf(found).Pointer() == reflect.ValueOf(essence).Pointer()
}

// What is not told by its text is read as ever.
func TestFetchLikely(t *testing.T) {
	const key, other = "kopf.zalando.org/last-handled-configuration", "op.example.org/last-handled-configuration"
	essence := object{"spec": object{"b": int64(1), "a": "ü"}}
	const ours = `{"spec":{"a":"\u00fc","b":1}}` + "\n"
	own := diffbase.Annotations{Prefix: "op.example.org"}
	tests := map[string]struct {
		reason  string
		storage diffbase.Storage
		body    object
		want    bool
	}{
		"Ours": {"it is what would be written", diffbase.Annotations{}, annotated(object{key: ours}), true},
		"Several": {
			"the first storage decides", diffbase.Multi{own, diffbase.Status{}}, annotated(object{other: ours}), true,
		},
		"Absent":     {"nothing is there", diffbase.Annotations{}, annotated(object{"x": "y"}), false},
		"NoMetadata": {"nor is there a place", diffbase.Annotations{}, object{}, false},
		"Malformed":  {"that is for Fetch to say", diffbase.Annotations{}, object{"metadata": "x"}, false},
		"Edited": {
			"the object was another one", diffbase.Annotations{},
			annotated(object{key: `{"spec":{"a":"\u00fc","b":2}}` + "\n"}), false,
		},
		"Longer": {"there was more", diffbase.Annotations{}, annotated(object{key: ours + "\n"}), false},
		"NotOurs": {
			"others write it with another end, and it is read", diffbase.Annotations{},
			annotated(object{key: `{"spec":{"a":"\u00fc","b":1}}`}), false,
		},
		"NoText": {"it is no annotation", diffbase.Annotations{}, annotated(object{key: int64(5)}), false},
		"Beside": {
			"one that has nothing is passed by", diffbase.Multi{diffbase.Status{}, own},
			annotated(object{other: ours}), true,
		},
		"Behind": {
			"one that cannot tell is read", diffbase.Multi{diffbase.Status{}, own},
			object{
				"metadata": object{"annotations": object{other: ours}},
				"status":   object{"kopf": object{"last-handled-configuration": ours}},
			}, false,
		},
		"Around": {
			"it has methods of the one that it is around, and its own of reading", inStatus{},
			object{"metadata": object{"annotations": object{key: ours}}, "status": object{"spec": "x"}}, false,
		},
		"AmongOthers": {
			"so it is asked among others", diffbase.Multi{inStatus{}},
			object{"metadata": object{"annotations": object{key: ours}}, "status": object{"spec": "x"}}, false,
		},
		"NoStorage": {"nothing is kept", diffbase.Multi{}, annotated(object{key: ours}), false},
	}
	for name, tc := range tests {
		if got := gives(tc.storage, tc.body, essence); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
		want, failed := tc.storage.Fetch(tc.body)
		got, err := diffbase.FetchLikely(tc.storage, tc.body, essence)
		if !diff.Equal(want, got) || (err != nil) != (failed != nil) {
			t.Errorf("%s: got %v, %v, want %v, %v", name, got, err, want, failed)
		}
	}
}

// FuzzFetchLikely compares whatever stands on an object with whatever it has now: what is told of the texts holds for
// what they mean.
func FuzzFetchLikely(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1}`, `{"a":1}`}, {`{"a":1.0}`, `{"a":1}`},
		{`{"b":[null,-0.0,1e21],"a":{}}`, `{"a":{},"b":[null,-0.0,1e+21]}`},
		{`{"a":"\ud800"}`, `{"a":"\ufffd"}`}, {`{"a":123456789012345678901234567890}`, `{"a":1e+29}`}, {"null", "{}"},
	} {
		f.Add(seed[0], seed[1])
	}
	const key = "kopf.zalando.org/last-handled-configuration"
	storage := diffbase.Annotations{}
	f.Fuzz(func(t *testing.T, present, text string) {
		now, err := storage.Fetch(annotated(object{key: present}))
		if err != nil || now == nil {
			return
		}
		body := annotated(object{key: text + "\n"})
		fetched, err := storage.Fetch(body)
		if gives(storage, body, now) && (err != nil || !diff.Equal(now, fetched)) {
			t.Fatalf("%q holds %v, and is read as %v, %v", text, now, fetched, err)
		}
		patch := object{}
		if err := storage.Store(patch, object{}, now); err != nil {
			t.Fatal(err)
		}
		if fetched, err = storage.Fetch(patch); !gives(storage, patch, now) || err != nil || !diff.Equal(now, fetched) {
			t.Errorf("what was stored of %v is read as %v, %v", now, fetched, err)
		}
	})
}

// Has tells what Fetch would, without reading it.
func TestHas(t *testing.T) {
	const key, other = "kopf.zalando.org/last-handled-configuration", "op.example.org/last-handled-configuration"
	own, ours := diffbase.Annotations{Prefix: "op.example.org"}, diffbase.Annotations{}
	tests := map[string]struct {
		reason  string
		storage diffbase.Storage
		body    object
		want    bool
	}{
		"There":       {"it is there", ours, annotated(object{key: `{"spec":{}}`}), true},
		"Empty":       {"even if nothing is in it", ours, annotated(object{key: "{}"}), true},
		"Absent":      {"another annotation is none", ours, annotated(object{"x": "y"}), false},
		"Removed":     {"a patch that removes it has none", ours, annotated(object{key: nil}), false},
		"Null":        {"it may be written as null", ours, annotated(object{key: "null"}), false},
		"Malformed":   {"what cannot be read is there", ours, annotated(object{key: "{"}), true},
		"NoText":      {"what is no annotation is there", ours, annotated(object{key: int64(5)}), true},
		"NoMetadata":  {"there is no place for it", ours, object{}, false},
		"NoPlace":     {"a malformed place may have it", ours, object{"metadata": "x"}, true},
		"Several":     {"any of them counts", diffbase.Multi{ours, own}, annotated(object{other: "{}"}), true},
		"NoneOfThem":  {"each is asked", diffbase.Multi{ours, own}, annotated(object{"x": "y"}), false},
		"None":        {"there is no storage", diffbase.Multi{}, annotated(object{key: "{}"}), false},
		"Elsewhere":   {"others have it where they say", inStatus{}, object{"status": object{"a": "b"}}, true},
		"NotAround":   {"one around ours is another one", inStatus{}, annotated(object{key: "{}"}), false},
		"AroundTwice": {"among several, too", diffbase.Multi{inStatus{}}, annotated(object{key: "{}"}), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := diffbase.Has(tc.storage, tc.body); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
			if essence, err := tc.storage.Fetch(tc.body); (err != nil || essence != nil) != tc.want {
				t.Errorf("%s: but Fetch gives %v, %v", tc.reason, essence, err)
			}
		})
	}
}

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

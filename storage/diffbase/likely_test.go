package diffbase_test

import (
	"reflect"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// statusStorage is a user's storage around a known one. It keeps the essence in the status.
type statusStorage struct{ diffbase.Annotations }

func (statusStorage) Fetch(body map[string]any) (diffbase.Essence, error) {
	status, _ := body["status"].(map[string]any)
	return status, nil
}

// returnsEssence returns whether FetchLikely returns the given essence itself instead of reading the stored one.
func returnsEssence(storage diffbase.Storage, body map[string]any, essence diffbase.Essence) bool {
	found, err := diffbase.FetchLikely(storage, body, essence)
	return err == nil && found != nil && reflect.ValueOf(found).Pointer() == reflect.ValueOf(essence).Pointer()
}

// TestFetchLikely shows that FetchLikely returns the essence itself only if the stored text is the one that would be
// written. Otherwise, it reads the text like Fetch.
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
		"Ours": {"a stored text that would be written again is not read",
			diffbase.Annotations{}, objectWithAnnotations(object{key: ours}), true},
		"Several": {
			"the first of several storages decides",
			diffbase.Multi{own, diffbase.Status{}}, objectWithAnnotations(object{other: ours}), true,
		},
		"Absent": {"a missing annotation has no essence",
			diffbase.Annotations{}, objectWithAnnotations(object{"x": "y"}), false},
		"NoMetadata": {"an object without metadata has no essence", diffbase.Annotations{}, object{}, false},
		"Malformed":  {"malformed metadata is left to Fetch", diffbase.Annotations{}, object{"metadata": "x"}, false},
		"Edited": {
			"a text of another essence is read", diffbase.Annotations{},
			objectWithAnnotations(object{key: `{"spec":{"a":"\u00fc","b":2}}` + "\n"}), false,
		},
		"Longer": {"a longer text is read", diffbase.Annotations{}, objectWithAnnotations(object{key: ours + "\n"}),
			false},
		"NotOurs": {
			"a text of another client without the final line break is read", diffbase.Annotations{},
			objectWithAnnotations(object{key: `{"spec":{"a":"\u00fc","b":1}}`}), false,
		},
		"NoText": {"an annotation that is not a text is read",
			diffbase.Annotations{}, objectWithAnnotations(object{key: int64(5)}), false},
		"Beside": {
			"a storage without an essence is skipped", diffbase.Multi{diffbase.Status{}, own},
			objectWithAnnotations(object{other: ours}), true,
		},
		"Behind": {
			"an essence in the status is read", diffbase.Multi{diffbase.Status{}, own},
			object{
				"metadata": object{"annotations": object{other: ours}},
				"status":   object{"kopf": object{"last-handled-configuration": ours}},
			}, false,
		},
		"Around": {
			"a user's storage around a known one is read with its own Fetch", statusStorage{},
			object{"metadata": object{"annotations": object{key: ours}}, "status": object{"spec": "x"}}, false,
		},
		"AmongOthers": {
			"a user's storage among others is read with its own Fetch", diffbase.Multi{statusStorage{}},
			object{"metadata": object{"annotations": object{key: ours}}, "status": object{"spec": "x"}}, false,
		},
		"NoStorage": {"without storages, there is no essence", diffbase.Multi{},
			objectWithAnnotations(object{key: ours}), false},
	}
	for name, tc := range tests {
		if got := returnsEssence(tc.storage, tc.body, essence); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
		want, failed := tc.storage.Fetch(tc.body)
		got, err := diffbase.FetchLikely(tc.storage, tc.body, essence)
		if !diff.Equal(want, got) || (err != nil) != (failed != nil) {
			t.Errorf("%s: got %v, %v, want %v, %v", name, got, err, want, failed)
		}
	}
}

// FuzzFetchLikely compares any stored text with any essence: if FetchLikely does not read the text, then the text
// means the essence.
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
		now, err := storage.Fetch(objectWithAnnotations(object{key: present}))
		if err != nil || now == nil {
			return
		}
		body := objectWithAnnotations(object{key: text + "\n"})
		fetched, err := storage.Fetch(body)
		if returnsEssence(storage, body, now) && (err != nil || !diff.Equal(now, fetched)) {
			t.Fatalf("%q is taken for %v, but is read as %v, %v", text, now, fetched, err)
		}
		patch := object{}
		if err := storage.Store(patch, object{}, now); err != nil {
			t.Fatal(err)
		}
		if fetched, err = storage.Fetch(patch); !returnsEssence(storage, patch, now) || err != nil ||
			!diff.Equal(now, fetched) {
			t.Errorf("the stored text of %v is read as %v, %v", now, fetched, err)
		}
	})
}

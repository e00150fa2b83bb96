package diffbase_test

import (
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// FuzzFetch reads whatever an annotation may hold. It is malformed, or absent, or an essence; and then what is stored
// of that essence is read as an equal one: otherwise, the object would be updated forever.
func FuzzFetch(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}\n", `{"spec":{"a":[1,-2.5,1e21,1.0,null,true,""]}}`, `{"spec":`, `[]`, `5`, `{"a":1e999}`,
		`{"a":123456789012345678901234567890,"b":-0,"c":-0.0,"d":"\ud800\u2028ü"}`, "\xef\xbb\xbf{}", `{"a":1}{"a":2}`,
	} {
		f.Add(seed)
	}
	const key = "kopf.zalando.org/last-handled-configuration"
	f.Fuzz(func(t *testing.T, text string) {
		fetched, err := diffbase.Annotations{}.Fetch(annotated(object{key: text}))
		var malformed *diffbase.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatalf("got error %v, want a malformed one", err)
		}
		if err != nil || fetched == nil {
			return
		}
		patch := object{}
		if err := (diffbase.Annotations{}).Store(patch, object{}, fetched); err != nil {
			t.Fatalf("cannot store %v: %v", fetched, err)
		}
		again, err := diffbase.Annotations{}.Fetch(patch)
		if err != nil || !diff.Equal(fetched, again) {
			t.Fatalf("stored %v, fetched %v with error %v", fetched, again, err)
		}
		second := object{}
		if err := (diffbase.Annotations{}).Store(second, object{}, again); err != nil || !diff.Equal(patch, second) {
			t.Errorf("stored %v the first time, %v the second, with error %v", patch, second, err)
		}
	})
}

package progress_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// FuzzFetch reads whatever an annotation may hold. It is malformed, or absent, or a record; and then what is stored of
// that record is read as an equal one, to the last unknown key and null.
func FuzzFetch(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "{", "[]", `{"retries":"three"}`, `{"retries":1e2,"started":"2020","subrefs":[]}`,
		`{"started":"2024-05-06T07:08:09.123456+00:00","delayed":"2024-05-06 ` +
			`07:08:19,5+0230","retries":1,"success":false}`,
		`{"purpose":"create","failure":null,"message":"ü☃😀\u0000\ud800",` +
			`"subrefs":["a/b"],"x":{"y":[1.0,null]},"z":null}`,
		`{"started":"9999-12-31T23:59:59.999999999-00:00"}`,
	} {
		f.Add(seed)
	}
	storages := []progress.Storage{progress.Annotations{Verbose: true}, progress.Status{}}
	f.Fuzz(func(t *testing.T, text string) {
		fetched, err := progress.Smart{}.Fetch(annotated(object{"kopf.zalando.org/fn": text}), "fn")
		var malformed *progress.MalformedError
		if err != nil && !errors.As(err, &malformed) {
			t.Fatalf("got error %v, want a malformed one", err)
		}
		if err != nil || fetched == nil {
			return
		}
		for _, storage := range storages {
			patch := object{}
			if err := storage.Store(patch, object{}, "fn", *fetched); err != nil {
				t.Fatalf("cannot store %v: %v", fetched.Fields(), err)
			}
			again, err := storage.Fetch(patch, "fn")
			if err != nil {
				t.Fatalf("cannot fetch what was stored: %v", err)
			}
			if delta := cmp.Diff(fetched, again); delta != "" || !diff.Equal(fetched.Fields(), again.Fields()) {
				t.Errorf("stored %v, fetched %v", fetched.Fields(), again.Fields())
			}
		}
	})
}

package diffbasetest

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/progresstest"
)

// Storage makes the storage that a vector describes; Kopf's default one if it describes none. An invalid option is an
// error; a class or an option that is not known fails the test.
func Storage(t testing.TB, spec any) (diffbase.Storage, error) {
	t.Helper()
	if spec == nil {
		return diffbase.Annotations{}, nil
	}
	s := vectors.Known(t, spec, "class", "prefix", "key", "v1", "name", "field", "ignored_fields", "storages")
	ignored := Paths(s.List("ignored_fields"))
	switch s.Text("class", "") {
	case "AnnotationsDiffBaseStorage":
		vectors.Known(t, spec, "class", "prefix", "key", "ignored_fields", "v1")
		return diffbase.Annotations{
			Prefix: s.Text("prefix", ""), Key: s.Text("key", ""), IgnoredFields: ignored, WithoutV1: s["v1"] == false,
		}, s.StoragePrefixError()
	case "StatusDiffBaseStorage":
		vectors.Known(t, spec, "class", "name", "field", "ignored_fields")
		return diffbase.Status{Name: s.Text("name", ""), Field: s.StorageField("field"), IgnoredFields: ignored}, nil
	case "MultiDiffBaseStorage":
		vectors.Known(t, spec, "class", "storages")
		var all diffbase.Multi
		for _, inner := range s.List("storages") {
			one, err := Storage(t, inner)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil, nil
	}
}

// Paths are the fields of a list.
func Paths(specs []any) (paths []diff.Path) {
	for _, spec := range specs {
		paths = append(paths, vectors.Path(spec))
	}
	return paths
}

// Clearing makes the function that removes from an essence what the progress storage of a vector keeps.
func Clearing(t testing.TB, spec any) (func(diffbase.Essence) diffbase.Essence, error) {
	t.Helper()
	storage, err := progresstest.Storage(t, spec)
	if err != nil {
		return nil, err
	}
	return storage.Clear, nil
}

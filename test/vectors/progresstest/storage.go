package progresstest

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// Storage makes the storage that a vector describes; Kopf's default one if it describes none. An invalid option is an
// error; a class or an option that is not known fails the test.
func Storage(t testing.TB, spec any) (progress.Storage, error) {
	t.Helper()
	if spec == nil {
		return progress.Smart{}, nil
	}
	s := vectors.Known(
		t, spec, "class", "prefix", "touch_key", "verbose", "v1", "name", "field", "touch_field", "storages",
	)
	annotations := progress.Annotations{
		Prefix: s.Text("prefix", ""), TouchKey: s.Text("touch_key", ""), Verbose: s.Flag("verbose"),
		WithoutV1: s["v1"] == false,
	}
	status := progress.Status{
		Name: s.Text("name", ""), Field: s.StorageField("field"), TouchField: s.StorageField("touch_field"),
	}
	switch s.Text("class", "") {
	case "AnnotationsProgressStorage":
		vectors.Known(t, spec, "class", "prefix", "verbose", "touch_key", "v1")
		return annotations, s.StoragePrefixError()
	case "StatusProgressStorage":
		vectors.Known(t, spec, "class", "name", "field", "touch_field")
		return status, nil
	case "NoWriteStatusProgressStorage":
		vectors.Known(t, spec, "class", "name", "field", "touch_field")
		status.NoWrite = true
		return status, nil
	case "SmartProgressStorage":
		return progress.Smart{
			Prefix: annotations.Prefix, TouchKey: annotations.TouchKey, Verbose: annotations.Verbose,
			WithoutV1: annotations.WithoutV1, Name: status.Name, Field: status.Field, TouchField: status.TouchField,
		}, s.StoragePrefixError()
	case "MultiProgressStorage":
		vectors.Known(t, spec, "class", "storages")
		return multi(t, s.List("storages"))
	default:
		t.Fatalf("the harness does not know the class of %v", spec)
		return nil, nil
	}
}

func multi(t testing.TB, specs []any) (progress.Storage, error) {
	t.Helper()
	var all progress.Multi
	for _, spec := range specs {
		one, err := Storage(t, spec)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

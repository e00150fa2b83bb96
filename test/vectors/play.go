package vectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Play runs a family of functions without state. It compares the output of every case with the expected one, both in
// the form of [Normal], and checks that the input object and essence stay unchanged.
func Play(
	t *testing.T, family string, rewrite func(key string, value any) any,
	play func(t *testing.T, input Fields) (any, error),
) {
	t.Helper()
	Run(t, family, func(t *testing.T, input map[string]any, want Expected) {
		Unchanged(t, input["body"])
		Unchanged(t, input["essence"])
		got, err := play(t, input)
		if want.Failed(t, got, err) {
			return
		}
		if delta := cmp.Diff(Normal(want.Value, rewrite), Normal(got, rewrite)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

// Object is a mapping as functions take it; an empty one if the field is absent.
func (f Fields) Object(key string) map[string]any {
	if object, ok := f[key].(map[string]any); ok {
		return object
	}
	return map[string]any{}
}

// Unchanged fails the test at its end if the value has changed: objects and essences are shared with caches.
func Unchanged(t testing.TB, value any) {
	t.Helper()
	before := encoded(t, value)
	t.Cleanup(func() {
		if delta := cmp.Diff(before, encoded(t, value)); delta != "" {
			t.Errorf("the input was modified, -before, +after:\n%s", delta)
		}
	})
}

func encoded(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("cannot encode the input: %v", err)
	}
	return string(data)
}

// StorageField is a field among the options of a storage: a string with dots, in which the storage's name is filled in,
// or a list of keys.
func (f Fields) StorageField(key string) []string {
	text, isText := f[key].(string)
	if !isText {
		return Path(f[key])
	}
	return Path(strings.ReplaceAll(text, "{name}", f.Text("name", "kopf")))
}

var errNoPrefix = errors.New("the prefix is empty")

// StoragePrefixError refuses the empty prefix among the options of a storage, as Kopf does: here, it means the default.
func (f Fields) StoragePrefixError() error {
	if prefix, given := f["prefix"]; given && (prefix == "" || prefix == nil) {
		return fmt.Errorf("storage %v: %w", f["class"], errNoPrefix)
	}
	return nil
}

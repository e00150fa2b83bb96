package reconcilers_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ignored are parts of the final object that say nothing.
var ignored = []string{"handled-uid", "handling-configuration", "touch-dummy"}

// compared is the final object as it is to be compared: with the texts of annotations decoded, and without what servers
// add.
func compared(t *testing.T, object any) any {
	t.Helper()
	body, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	body = runtime.DeepCopyJSON(body)
	metadata, _ := body["metadata"].(map[string]any)
	for _, key := range []string{"resourceVersion", "generation", "creationTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, key)
	}
	if metadata["deletionTimestamp"] != nil {
		metadata["deletionTimestamp"] = "set by the server"
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		for _, name := range ignored {
			if strings.HasSuffix(key, "/"+name) {
				delete(annotations, key)
			}
		}
		var decoded any
		if text, ok := value.(string); ok && strings.HasPrefix(text, "{") && json.Unmarshal(
			[]byte(text), &decoded,
		) == nil {
			annotations[key] = decoded
		}
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return body
}

// alike compares with a tolerance for timestamps. The empty is as good as absent in what servers tidy up.
func alike(want, got any) bool {
	wanted, isMapping := want.(map[string]any)
	given, wasMapping := got.(map[string]any)
	if !isMapping || !wasMapping {
		return diff.Equal(want, got) || sameMoment(want, got)
	}
	if len(wanted) != len(given) {
		return false
	}
	for key, value := range wanted {
		other, ok := given[key]
		if !ok || !alike(value, other) {
			return false
		}
	}
	return true
}

func sameMoment(want, got any) bool {
	a, wasText := want.(string)
	b, isText := got.(string)
	if !wasText || !isText {
		return false
	}
	then, err := time.Parse(time.RFC3339Nano, a)
	now, other := time.Parse(time.RFC3339Nano, b)
	return err == nil && other == nil && math.Abs(then.Sub(now).Seconds()) <= tolerance
}

// kopfBegan is the moment from which all of them count.
var kopfBegan = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)

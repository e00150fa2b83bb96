package progress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const span = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// TestTrace is about the key of traces, which Kopf does not know: see D-traceparent.
func TestTrace(t *testing.T) {
	traced := progress.Record{Trace: span}
	for name, storage := range map[string]progress.Storage{
		"annotations": progress.Annotations{WithoutV1: true}, "verbose": progress.Annotations{Verbose: true},
		"status": progress.Status{}, "smart": progress.Smart{},
		"both": progress.Multi{progress.Annotations{}, progress.Status{}},
	} {
		patch := object{}
		if err := storage.Store(patch, object{}, "fn", traced); err != nil {
			t.Fatal(err)
		}
		read, err := storage.Fetch(patch, "fn")
		if err != nil || !read.Equal(traced) || !read.Clone().Equal(traced) || read.Unknown != nil || read.Foreign() {
			t.Errorf("%s: the trace is not kept: %+v, %v", name, read, err)
		}
	}
	if traced.Equal(progress.Record{}) {
		t.Error("a record with a trace is the same as one without")
	}
	if _, written := (progress.Record{}).Fields()["traceparent"]; written {
		t.Error("those who do not trace have another record than before")
	}
}

// In the status, a merge-patch must remove what is there.
func TestTraceIsRemoved(t *testing.T) {
	held := object{"status": object{"kopf": object{"progress": object{"fn": object{"traceparent": span}}}}}
	patch := object{}
	if err := (progress.Status{}).Store(patch, held, "fn", progress.Record{}); err != nil {
		t.Fatal(err)
	}
	record, _ := patch["status"].(object)["kopf"].(object)["progress"].(object)["fn"].(object)
	if value, removed := record["traceparent"]; !removed || value != nil {
		t.Errorf("the former trace stays: %v", record)
	}
}

// Nothing that handlers do depends on a trace, so a malformed one is as good as none.
func TestMalformedTraces(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
	}{
		"Number":    {"it is no text", int64(7)},
		"Object":    {"it is no text", object{"a": "b"}},
		"Empty":     {"it says nothing", ""},
		"Garbage":   {"anybody may write it", "red"},
		"Upper":     {"the format is in lower case", strings.ToUpper(span)},
		"NoTrace":   {"zeros are no trace", "00-" + strings.Repeat("0", 32) + "-0123456789abcdef-01"},
		"NoSpan":    {"zeros are no span", "00-0123456789abcdef0123456789abcdef-" + strings.Repeat("0", 16) + "-01"},
		"Short":     {"a digit is missing", span[:len(span)-1]},
		"Long":      {"it has more than version 00 has", span + "-00"},
		"Version":   {"nobody knows what a later version means", "01" + span[2:]},
		"Forbidden": {"there is no version ff", "ff" + span[2:]},
		"Letters":   {"they are no digits", strings.Replace(span, "a", "g", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := progress.DecodeRecord(object{"retries": int64(1), "traceparent": tc.value})
			if err != nil || record.Trace != "" {
				t.Errorf("%s: got %q, error %v", tc.reason, record.Trace, err)
			}
			if d := cmp.Diff(object{"retries": int64(1)}, record.Fields()); d != "" {
				t.Errorf("it is written again: -want, +got:\n%s", d)
			}
		})
	}
}

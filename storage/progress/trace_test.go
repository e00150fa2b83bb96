package progress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const traceParent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// TestTrace shows that the trace, whose key is unknown to Kopf, is stored and compared: see D-traceparent.
func TestTrace(t *testing.T) {
	traced := progress.Record{Trace: traceParent}
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
		if err != nil || !read.Equal(traced) || !read.Clone().Equal(traced) || read.Unknown != nil || read.IsForeign() {
			t.Errorf("%s: the trace is not kept: %+v, %v", name, read, err)
		}
	}
	if traced.Equal(progress.Record{}) {
		t.Error("a record with a trace must differ from one without")
	}
	if _, written := (progress.Record{}).JSONFields()["traceparent"]; written {
		t.Error("a record without a trace must not have the key")
	}
}

// TestTraceIsRemoved shows that in the status, a merge-patch removes the former trace.
func TestTraceIsRemoved(t *testing.T) {
	held := object{"status": object{"kopf": object{"progress": object{"fn": object{"traceparent": traceParent}}}}}
	patch := object{}
	if err := (progress.Status{}).Store(patch, held, "fn", progress.Record{}); err != nil {
		t.Fatal(err)
	}
	record, _ := patch["status"].(object)["kopf"].(object)["progress"].(object)["fn"].(object)
	if value, removed := record["traceparent"]; !removed || value != nil {
		t.Errorf("the former trace stays: %v", record)
	}
}

// TestMalformedTraces shows that a malformed trace is ignored, as no handler depends on it.
func TestMalformedTraces(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
	}{
		"Number":  {"a number is ignored", int64(7)},
		"Object":  {"an object is ignored", object{"a": "b"}},
		"Empty":   {"an empty text is ignored", ""},
		"Garbage": {"an arbitrary text is ignored, as any client can write it", "red"},
		"Upper":   {"upper-case digits are ignored", strings.ToUpper(traceParent)},
		"NoTrace": {"a trace id of zeros is ignored", "00-" + strings.Repeat("0", 32) + "-0123456789abcdef-01"},
		"NoSpan": {"a span id of zeros is ignored",
			"00-0123456789abcdef0123456789abcdef-" + strings.Repeat("0", 16) + "-01"},
		"Short":     {"a text that is too short is ignored", traceParent[:len(traceParent)-1]},
		"Long":      {"a text longer than version 00 is ignored", traceParent + "-00"},
		"Version":   {"a later version is ignored", "01" + traceParent[2:]},
		"Forbidden": {"the invalid version ff is ignored", "ff" + traceParent[2:]},
		"Letters":   {"letters that are not digits are ignored", strings.Replace(traceParent, "a", "g", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := progress.DecodeRecord(object{"retries": int64(1), "traceparent": tc.value})
			if err != nil || record.Trace != "" {
				t.Errorf("%s: got %q, error %v", tc.reason, record.Trace, err)
			}
			if d := cmp.Diff(object{"retries": int64(1)}, record.JSONFields()); d != "" {
				t.Errorf("the malformed trace is written again: -want, +got:\n%s", d)
			}
		})
	}
}

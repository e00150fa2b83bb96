package kopf_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestArgumentsWithoutOperator shows that methods of arguments that a test creates itself fail with a message that
// names the test kit.
func TestArgumentsWithoutOperator(t *testing.T) {
	type (
		run        = kopf.Task[*Widget]
		rawEvent   = kopf.WatchEvent[*Widget]
		childEvent = kopf.ChildEvent[*Widget, *Widget]
		admission  = kopf.Admission[*Widget]
	)
	ctx, nothing := t.Context(), func(*Widget) {}
	for name, call := range map[string]func() error{
		"Patch":     func() error { (&Change{}).Patch(nothing); return nil },
		"TryPatch":  func() error { (&Change{}).TryPatch(func(*Widget) error { return nil }); return nil },
		"SetResult": func() error { (&Change{}).SetResult(1); return nil },
		"Result":    func() error { _, err := kopf.Result[int](&Change{}, "a"); return err },
		"Flush":     func() error { return (&Change{}).Flush(ctx) },
		"Latest":    func() error { (&Change{}).Latest(); return nil },
		"Resource":  func() error { (&Change{}).Resource(); return nil },
		"Sub":       func() error { (&Change{}).Sub("a", succeed); return nil },
		"RunSubs":   func() error { return (&Change{}).RunSubs(ctx) },
		"Outcome":   func() error { (&Change{}).Outcome("a"); return nil },
		"Info":      func() error { (&Change{}).Info("A", "b"); return nil },
		"About":     func() error { (&Change{}).EventRecorderFor(&Widget{}).Info("A", "b"); return nil },
		"Ensure":    func() error { return (&Change{}).Ensure(ctx) },
		"WaitFor": func() error {
			return kopf.WaitFor(&Change{}, &Widget{}, func(*Widget) bool { return true }, time.Minute)
		},
		"Adopt":     func() error { return (&Change{}).Adopt(&Widget{}) },
		"Condition": func() error { (&Change{}).Condition("A", metav1.ConditionTrue, "B", ""); return nil },
		"Field":     func() error { kopf.FieldChange[int](&Change{}); return nil },

		"RunPatch":        func() error { (&run{}).Patch(nothing); return nil },
		"RunTryPatch":     func() error { (&run{}).TryPatch(func(*Widget) error { return nil }); return nil },
		"RunCurrent":      func() error { (&run{}).Latest(); return nil },
		"RunStopping":     func() error { (&run{}).Stopping(); return nil },
		"RunStopReason":   func() error { return (&run{}).StopReason() },
		"RunFlush":        func() error { return (&run{}).Flush(ctx) },
		"RunEnsure":       func() error { return (&run{}).Ensure(ctx) },
		"EventPatch":      func() error { (&rawEvent{}).Patch(nothing); return nil },
		"EventInfo":       func() error { (&rawEvent{}).Info("A", "b"); return nil },
		"ChildEventPatch": func() error { (&childEvent{}).Patch(nothing); return nil },

		"AdmissionPatch":    func() error { (&admission{}).Patch(nothing); return nil },
		"AdmissionWarning":  func() error { (&admission{}).Warning("a"); return nil },
		"AdmissionLatest":   func() error { (&admission{}).Latest(); return nil },
		"AdmissionResource": func() error { (&admission{}).Resource(); return nil },
		"AdmissionRaw":      func() error { (&admission{}).Raw(); return nil },
		"AdmissionDiff":     func() error { (&admission{}).Diff(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			if err := failure(call); err == nil || !strings.Contains(err.Error(), "package facadetest") {
				t.Errorf("the message names the test kit: got %v", err)
			}
		})
	}
}

// failure returns the error of the call, or its panic as an error.
func failure(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = errors.New(fmt.Sprint(value))
		}
	}()
	return call()
}

// TestNoIndexAndNoMemo shows that a nil or empty index or memo fails with a message that names the test kit.
func TestNoIndexAndNoMemo(t *testing.T) {
	var index *kopf.Index[string, int]
	var memo *kopf.Memo[int]
	for want, calls := range map[string][]func() error{
		"facadetest.NewIndex": {
			func() error { index.Get("a"); return nil }, func() error { index.Has("a"); return nil },
			func() error { (&kopf.Index[string, int]{}).Len(); return nil },
			func() error {
				for range index.All() {
					break
				}
				return nil
			},
		},
		"facadetest.NewMemo": {
			func() error { memo.Of(&Widget{}); return nil }, func() error { (&kopf.Memo[int]{}).Len(); return nil },
		},
	} {
		for i, call := range calls {
			if err := failure(call); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("call %d: the message names %s: got %v", i, want, err)
			}
		}
	}
}

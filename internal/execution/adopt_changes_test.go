package execution_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

func TestContinue(t *testing.T) {
	a := execution.NewAttempt(&handlers.Handler{ID: "fn"}, &cause.Cause{}, nil)
	if a.ApplyAccount(at(3)); !a.Call.Started.Equal(at(3)) {
		t.Errorf("want the first attempt to begin now, got %v", a.Call.Started)
	}
	a.Account = execution.Account{Retries: 2, Started: epoch}
	if a.ApplyAccount(at(3)); !a.Call.Started.Equal(epoch) || a.Call.Retry != 2 || a.Limits.Runtime != 3*time.Second {
		t.Errorf("want a later attempt to continue its account, got %v, %d, %v",
			a.Call.Started, a.Call.Retry, a.Limits.Runtime)
	}
}

// TestAdopt shows that an attempt adopts the changes that another function has made to the same object.
func TestAdopt(t *testing.T) {
	set := func(key string) patching.Transform {
		return func(body map[string]any) error {
			if body["refuses"] != nil {
				return errOrdinary
			}
			body[key] = "new"
			return nil
		}
	}
	done := func(body object, result any, transforms ...patching.Transform) *execution.Attempt {
		a := execution.NewAttempt(&handlers.Handler{ID: "other"}, &cause.Cause{}, body)
		for _, transform := range transforms {
			if err := a.AddTransform(transform); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.SetResult(result); err != nil {
			t.Fatal(err)
		}
		a.Outcome = execution.Outcome{Final: true}
		a.CloseForChanges()
		return a
	}
	for name, tc := range map[string]struct {
		reason string
		body   object
		other  *execution.Attempt
		want   object
	}{
		"Nothing": {"an attempt without changes leaves the object as it is",
			object{"a": "b"}, done(object{}, nil), object{"a": "b"}},
		"Result": {
			"the result of the other attempt is adopted", object{"a": "b"}, done(object{}, "fine"),
			object{"a": "b", "status": object{"other": "fine"}},
		},
		"Changes": {
			"the changes of the other attempt are adopted",
			object{"a": "b"}, done(object{}, nil, set("c")), object{"a": "b", "c": "new"},
		},
		"Refused": {
			"neither changes nor the result are adopted if a change fails on the object",
			object{"refuses": true}, done(object{}, "fine", set("c")),
			object{"refuses": true},
		},
	} {
		a := execution.NewAttempt(&handlers.Handler{ID: "fn"}, &cause.Cause{Object: jsontext.NewFromValue(tc.body)},
			tc.body)
		a.AdoptChanges(tc.other)
		if d := cmp.Diff(tc.want, a.Call.Object); d != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, d)
		}
	}
}

// unfit is an error that reports whether the object is undecodable.
type unfit bool

func (unfit) Error() string       { return "unfit" }
func (u unfit) Undecodable() bool { return bool(u) }

func TestUndecodable(t *testing.T) {
	for err, want := range map[error]bool{errOrdinary: false, unfit(true): true, unfit(false): false} {
		if got := execution.IsUndecodable(fmt.Errorf("decoding: %w", err)); got != want {
			t.Errorf("%#v: got %v", err, got)
		}
	}
}

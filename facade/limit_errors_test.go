package kopf_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestErrorsOfLimits shows which error a handler ends with when its retries or its time are over.
func TestErrorsOfLimits(t *testing.T) {
	broken := errors.New("broken")
	fails := func(context.Context, *Change) error { return broken }
	for name, tc := range map[string]struct {
		reason            string
		opts              []kopf.Option
		options           []facadetest.Option
		wantIs, wantIsNot error
		wraps             bool
	}{
		"Retries": {
			"the last failed attempt ends with ErrRetries and wraps its error", []kopf.Option{kopf.Retries(3)},
			[]facadetest.Option{facadetest.Retry(2)},
			kopf.ErrRetries, kopf.ErrTimeout, true,
		},
		"RetriesBefore": {
			"a handler without attempts left ends with ErrRetries before a call", []kopf.Option{kopf.Retries(3)},
			[]facadetest.Option{facadetest.Retry(3)},
			kopf.ErrRetries, kopf.ErrTimeout, false,
		},
		"Timeout": {
			"a failure whose retry would come too late ends with ErrTimeout", []kopf.Option{kopf.Timeout(time.Minute)},
			nil,
			kopf.ErrTimeout, kopf.ErrRetries, true,
		},
		"TimeoutBefore": {
			"a handler whose time is over ends with ErrTimeout before a call", []kopf.Option{kopf.Timeout(time.Minute)},
			[]facadetest.Option{facadetest.Started(time.Now().Add(-time.Hour))},
			kopf.ErrTimeout, kopf.ErrRetries, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := append(tc.options, facadetest.Reason(kopf.ReasonCreate))
			got := facadetest.NewChange(&Widget{}, options...).Call(t.Context(), fails, tc.opts...)
			if !got.Final || !errors.Is(got.Err, tc.wantIs) || errors.Is(got.Err, tc.wantIsNot) ||
				errors.Is(got.Err, broken) != tc.wraps {
				t.Errorf("%s: got %+v", tc.reason, got.Err)
			}
		})
	}
}

// TestErrorOfStartupWithoutRetries shows that an operator ends with ErrRetries when a startup handler has no retries
// left.
func TestErrorOfStartupWithoutRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := kopf.New("retries.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		op.OnStartup(
			"db",
			func(context.Context, *kopf.Activity) error { return errors.New("refused") },
			kopf.Retries(2),
		)
		err := op.Run(t.Context(), kopf.RunSettings{Config: memapi.Config(memapi.New())})
		if !errors.Is(err, kopf.ErrRetries) {
			t.Errorf("the operator ends with %v, want ErrRetries", err)
		}
	})
}

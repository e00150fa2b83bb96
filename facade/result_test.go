package kopf_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

type address struct {
	Host string `json:"host"`
	Port int64  `json:"port"`
}

// TestResultsThatAreNotJSON shows that a result that is not JSON fails the handler permanently.
func TestResultsThatAreNotJSON(t *testing.T) {
	for name, value := range map[string]any{"channel": make(chan int), "function": func() {}, "number": math.NaN()} {
		t.Run(name, func(t *testing.T) {
			got := facadetest.NewChange(&Widget{}).Call(t.Context(), func(_ context.Context, c *Change) error {
				c.SetResult(value)
				return nil
			})
			if !got.Final || got.Err == nil ||
				!strings.Contains(got.Err.Error(), `result of handler "handler" is not a JSON value`) {
				t.Errorf("a result that is not JSON must fail the handler permanently, got %+v", got)
			}
		})
	}
}

// TestSetResult shows which result a handler has.
func TestSetResult(t *testing.T) {
	failed := errors.New("failed")
	cases := map[string]struct {
		reason string
		act    func(c *Change) error
		want   any
	}{
		"none": {"a handler does not need a result", func(*Change) error { return nil }, nil},
		"null": {"nil removes the result", func(c *Change) error { c.SetResult(1); c.SetResult(nil); return nil }, nil},
		"zero": {"zero is a result", func(c *Change) error { c.SetResult(0); return nil }, int64(0)},
		"the last one": {"the last result " +
			"of a handler counts", func(c *Change) error { c.SetResult("a"); c.SetResult("b"); return nil }, "b"},
		"struct": {"a struct is stored as its JSON", func(c *Change) error {
			c.SetResult(
				address{"h", 1},
			)
			return nil
		}, map[string]any{"host": "h", "port": int64(1)}},
		"of a failure": {"the result of a failed handler is dropped",
			func(c *Change) error { c.SetResult(1); return failed }, nil},
		"large integers": {"large integers are not rounded", func(c *Change) error {
			c.SetResult(
				int64(9007199254740993),
			)
			return nil
		}, int64(9007199254740993)},
		"changed later": {"a later change of the value does not count", func(c *Change) error {
			value := map[string]int{"a": 1}
			c.SetResult(value)
			value["a"] = 2
			return nil
		}, map[string]any{"a": int64(1)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := facadetest.NewChange(&Widget{}).Call(t.Context(), func(_ context.Context, ch *Change) error {
				return c.act(ch)
			})
			if d := cmp.Diff(c.want, got.Result); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestResult shows how a handler reads the results of other handlers.
func TestResult(t *testing.T) {
	object := body(nil)
	object["status"] = map[string]any{
		"whole": map[string]any{
			"host": "h", "port": int64(9007199254740993),
		}, "text": "x", "null": nil, "a/b.c": int64(1),
	}
	a := call(t, newCreationOperator(func(_ context.Context, c *Change) error {
		if _, err := kopf.Result[string](c, "other"); !errors.Is(err, kopf.ErrNoResult) || !strings.Contains(
			err.Error(), `handler "other" of object ns/w1`,
		) {
			t.Errorf("a missing result must be ErrNoResult with the handler and the object: %v", err)
		}
		if _, err := kopf.Result[string](c, "null"); !errors.Is(err, kopf.ErrNoResult) {
			t.Errorf("a result of null must be ErrNoResult: %v", err)
		}
		if _, err := kopf.Result[int](c, "text"); err == nil || errors.Is(
			err, kopf.ErrNoResult,
		) || !strings.Contains(err.Error(), "string cannot be decoded") {
			t.Errorf("a result of another type must be a decoding error: %v", err)
		}
		if got, err := kopf.Result[address](c, "whole"); err != nil || got != (address{"h", 9007199254740993}) {
			t.Errorf("a struct must be decoded without rounding: %v, %v", got, err)
		}
		if got, err := kopf.Result[int](c, "a/b.c"); err != nil || got != 1 {
			t.Errorf("an id must be one key, whatever its characters: %v, %v", got, err)
		}
		return nil
	}), object, nil)
	if a.Outcome.Err != nil {
		t.Fatal(a.Outcome.Err)
	}
}

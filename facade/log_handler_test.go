package kopf_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// holdingLog is comparable, though what is in it is not.
type holdingLog struct {
	panickingLog
	held any
}

// The log is in use when the startup is called: a handler of it that chooses another one ends the program, which would
// go on with the former one otherwise.
func TestStartupChangesTheLog(t *testing.T) {
	own, list := slog.NewTextHandler(io.Discard, nil), holdingLog{held: []int{1}}
	cases := map[string]struct {
		reason      string
		given, then slog.Handler
		refused     bool
	}{
		"none, then one":   {"it comes too late", nil, own, true},
		"one, then none":   {"there is one already", own, nil, true},
		"another":          {"it comes too late", own, slog.NewTextHandler(io.Discard, nil), true},
		"of another type":  {"it comes too late", own, slog.NewJSONHandler(io.Discard, nil), true},
		"the same":         {"nothing is changed", own, own, false},
		"not comparable":   {"nobody can tell whether it is the same", list, list, false},
		"nothing at all":   {"nothing is changed", nil, nil, false},
		"a pointer to it":  {"it is another type", list, &list, true},
		"the same pointer": {"nothing is changed", &list, &list, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{
				AddToScheme: runtime.SchemeBuilder{addWidgets}, LogHandler: c.given,
			})
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			op.OnStartup("a", func(_ context.Context, s *kopf.Activity) error {
				s.Settings.LogHandler = c.then
				return nil
			})
			op.WithManager(func(ctrl.Manager) error { return errors.New("far enough") })
			code, _, errs := execute(t, op, "-A", "--kubeconfig", nowhere)
			const refusal = "a handler of OnStartup changed LogHandler, which is in use already: give it to kopf.New"
			if refused := strings.Contains(errs, refusal); refused != c.refused || code != 1 {
				t.Errorf("%s: exit code %d, refused: %t: %s", c.reason, code, refused, errs)
			}
			if c.given == nil && !c.refused && !strings.Contains(errs, "far enough") {
				t.Errorf("%s: %s", c.reason, errs)
			}
		})
	}
}

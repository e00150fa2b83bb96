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

// incomparableLog has a comparable type, but comparing its content panics.
type incomparableLog struct {
	panickingLog
	content any
}

// TestStartupChangesTheLog shows that a startup handler that replaces the log handler ends the program, because the
// former log handler is already in use.
func TestStartupChangesTheLog(t *testing.T) {
	own, list := slog.NewTextHandler(io.Discard, nil), incomparableLog{content: []int{1}}
	cases := map[string]struct {
		reason        string
		before, after slog.Handler
		wantRefusal   bool
	}{
		"none, then one": {"a log handler that is first given at startup is refused", nil, own, true},
		"one, then none": {"removing the log handler at startup is refused", own, nil, true},
		"another": {"another log handler of the same type is refused", own, slog.NewTextHandler(io.Discard,
			nil), true},
		"of another type": {"a log handler of another type is refused", own,
			slog.NewJSONHandler(io.Discard, nil),
			true},
		"the same":         {"the same log handler is accepted", own, own, false},
		"not comparable":   {"a log handler that cannot be compared is accepted", list, list, false},
		"nothing at all":   {"a startup without any log handler is accepted", nil, nil, false},
		"a pointer to it":  {"a pointer instead of the former value is refused", list, &list, true},
		"the same pointer": {"the same pointer to a log handler is accepted", &list, &list, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{
				AddToScheme: runtime.SchemeBuilder{addWidgets}, LogHandler: c.before,
			})
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			op.OnStartup("a", func(_ context.Context, s *kopf.Activity) error {
				s.Settings.LogHandler = c.after
				return nil
			})
			op.WithManager(func(ctrl.Manager) error { return errors.New("far enough") })
			code, _, errs := execute(t, op, "-A", "--kubeconfig", unreachableKubeconfig)
			const refusal = "a handler of OnStartup changed LogHandler, which is in use already: give it to kopf.New"
			if refused := strings.Contains(errs, refusal); refused != c.wantRefusal || code != 1 {
				t.Errorf("%s: exit code %d, refused: %t: %s", c.reason, code, refused, errs)
			}
			if c.before == nil && !c.wantRefusal && !strings.Contains(errs, "far enough") {
				t.Errorf("%s: %s", c.reason, errs)
			}
		})
	}
}

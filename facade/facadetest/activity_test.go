package facadetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// newMixedOperator returns an operator with handlers of most families.
func newMixedOperator() *kopf.Operator {
	op := kopf.New("household.example.org")
	op.OnStartup("open", func(context.Context, *kopf.Activity) error { return nil })
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("make", func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		c.Sub("bed", func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
			if c.Retry == 0 {
				return kopf.Temporary(errors.New("not yet"), time.Minute)
			}
			return nil
		})
		return nil
	})
	maps.OnDelete("clear", func(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil })
	maps.Daemon("watch", func(ctx context.Context, _ *kopf.Task[*corev1.ConfigMap]) error { <-ctx.Done(); return nil })
	return op
}

// newTimerOperator returns an operator with a timer, which never comes to rest.
func newTimerOperator() *kopf.Operator {
	op := kopf.New("ticking.example.org")
	kopf.For(op, &corev1.ConfigMap{}).Timer("tick", time.Minute,
		func(context.Context, *kopf.Task[*corev1.ConfigMap]) error { return nil })
	return op
}

func lines[S fmt.Stringer](all []S) (texts []string) {
	for _, one := range all {
		texts = append(texts, one.String())
	}
	return texts
}

func TestCallsAndWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		r := facadetest.Start(t, newMixedOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		createConfigMap(t, server, "home")
		r.Settle(time.Hour, 24*time.Hour)
		made := []string{
			"startup: open #1: success",
			"create ConfigMap default/home: make #1: retry: the sub-handlers are not all finished",
			"create ConfigMap default/home: make/bed #1: retry: not yet",
			"create ConfigMap default/home: make #2: success",
			"create ConfigMap default/home: make/bed #2: success",
		}
		changes, daemons := splitDaemonCalls(r.Calls())
		if diff := cmp.Diff(made, lines(changes)); diff != "" {
			t.Errorf("the calls for a creation (-want, +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"run ConfigMap default/home: watch #1: running"}, lines(daemons)); diff != "" {
			t.Errorf("the calls of the daemon (-want, +got):\n%s", diff)
		}
		r.Quiet(24 * time.Hour)
		written := len(r.Writes())
		removeConfigMap(t, server, "home")
		r.Settle(time.Hour, 24*time.Hour)
		changes, daemons = splitDaemonCalls(r.Calls())
		made = append(made, "delete ConfigMap default/home: clear #1: success")
		if diff := cmp.Diff(made, lines(changes)); diff != "" {
			t.Errorf("the calls for a creation and a deletion (-want, +got):\n%s", diff)
		}
		if len(daemons) != 1 || daemons[0].Outcome != "success" {
			t.Errorf("the daemon must end with success: %v", daemons)
		}
		if again := changes[3]; again.Began.Sub(changes[2].Ended) != time.Minute || again.Ended.IsZero() {
			t.Errorf("the retry must begin a minute later: it began after %s and ended at %s",
				again.Began.Sub(changes[2].Ended), again.Ended)
		}
		home := "patch /api/v1/namespaces/default/configmaps/home: 200"
		released := lines(r.Writes())[written:]
		if diff := cmp.Diff([]string{home}, released); diff != "" {
			t.Errorf("the writes for a deletion (-want, +got):\n%s", diff)
		}
		if body := string(r.Writes()[0].Body); !strings.Contains(body, "finalizers") {
			t.Errorf("the first write must add the finalizer, got %s", body)
		}
	})
}

// splitDaemonCalls separates the calls of daemons from the others, as they run side by side.
func splitDaemonCalls(all []facadetest.HandlerCall) (others, daemons []facadetest.HandlerCall) {
	for _, c := range all {
		if c.Handler == "watch" {
			daemons = append(daemons, c)
		} else {
			others = append(others, c)
		}
	}
	return others, daemons
}

func TestSettleAndQuiet(t *testing.T) {
	cases := map[string]struct {
		reason string
		op     func() *kopf.Operator // is called in the bubble
		test   func(r *facadetest.Runner)
		want   []string
	}{
		"NeverSettles": {
			reason: "an operator with a timer fails Settle, with its calls in the error",
			op:     newTimerOperator,
			test:   func(r *facadetest.Runner) { r.Settle(90*time.Second, time.Hour) },
			want: []string{
				"the operator has not come to rest in 1h0m0s; its activity in the last 1m30s:",
				"called: run ConfigMap default/one: tick #1: success",
			},
		},
		"StillRunning": {
			reason: "a handler that still runs fails Settle",
			op: func() *kopf.Operator {
				return newGreetingOperator(func(ctx context.Context) error { <-ctx.Done(); return nil })
			},
			test: func(r *facadetest.Runner) { r.Settle(time.Minute, time.Hour) },
			want: []string{"called: create ConfigMap default/one: greet #1: running"},
		},
		"NotQuiet": {
			reason: "calls and writes fail Quiet and are listed",
			op:     newMixedOperator,
			test:   func(r *facadetest.Runner) { r.Quiet(time.Hour) },
			want: []string{
				"the operator has not been quiet for 1h0m0s:", "called: create ConfigMap default/one: make #2: success",
				`written: patch /api/v1/namespaces/default/configmaps/one: 200 `,
			},
		},
		"Quiet": {
			reason: "a running daemon fails neither Settle nor Quiet",
			op:     newMixedOperator,
			test:   func(r *facadetest.Runner) { r.Settle(time.Hour, 24*time.Hour); r.Quiet(time.Hour) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				got := failuresOf(t, func(t testing.TB) {
					r := facadetest.Start(t, tc.op(), facadetest.Against(memapi.Config(server)))
					r.Ready()
					createConfigMap(t, server, "one")
					tc.test(r)
				})
				if len(tc.want) == 0 && got != "" {
					t.Errorf("%s: got the failure %s", tc.reason, got)
				}
				for _, want := range tc.want {
					if !strings.Contains(got, want) {
						t.Errorf("%s: the failure lacks %q:\n%s", tc.reason, want, got)
					}
				}
			})
		})
	}
}

package changes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// steps declares and runs sub-handlers and records their calls in the journal under their own ids.
func (w *harness) steps(lifecycle *handlers.Lifecycle, subs ...*handlers.Handler) handlers.Func {
	return func(ctx context.Context, c *handlers.Invocation) error {
		for _, sub := range subs {
			own := *sub
			own.Call = func(ctx context.Context, c *handlers.Invocation) error {
				w.called(c.Cause, sub.ID)
				return sub.Call(ctx, c)
			}
			if err := c.Subs.Declare(&own); err != nil {
				return err
			}
		}
		return c.Subs.Run(ctx, lifecycle)
	}
}

func sub(id string, fn handlers.Func, options ...option) *handlers.Handler {
	return on("", id, fn, options...)
}

func afterSuccess(ids ...string) option { return func(h *handlers.Handler) { h.After = ids } }

func afterEnd(ids ...string) option { return func(h *handlers.Handler) { h.AfterFinished = ids } }

var ifNever = when(func(*cause.Cause) bool { return false })

// TestDependencies shows when sub-handlers that depend on others are called (deviation D-dependencies).
func TestDependencies(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Order": {"a dependent sub-handler is called after its dependencies, otherwise in the order of declaration",
			func(w *harness) {
				w.compact(onCreate("p", w.steps(nil,
					sub("c", ok, afterSuccess("a", "b")), sub("a", ok), sub("d", ok, afterSuccess("a")), sub("b", ok),
					sub("e", ok)))).settle()
				w.wantCalls("all", "0s create p", "0s create a", "0s create d", "0s create b", "0s create c",
					"0s create e")
				w.wantClean("all")
			}},
		"Retried": {"a dependent waits for retries of its dependency without additional passes", func(w *harness) {
			p := w.compact(onCreate("p", w.steps(nil, sub("b", ok, afterSuccess("a")), sub("a", fails(2, later)))))
			p.settle()
			w.wantCalls("all", "0s create p", "0s create a", "10s create p", "10s create a", "20s create p",
				"20s create a", "20s create b")
			w.want("sleeps", []time.Duration{10 * time.Second, 10 * time.Second}, p.requeueDelays)
			w.wantClean("all")
		}},
		"Failed": {"a dependent of a failed sub-handler fails without a call, as its own dependents " +
			"do", func(w *harness) {
			p := w.compact(onCreate("p", w.steps(nil, sub("a", fails(1, permanentError{})),
				sub("b", ok, afterSuccess("a")), sub("c", ok, afterSuccess("b")), sub("d", fails(1, later)))))
			p.step()
			w.wantCalls("all", "0s create p", "0s create a", "0s create d")
			w.want("failure", true, w.record("p.b", "failure"))
			w.want("message", `not called, because handlers that it depends on failed permanently: "a"`,
				w.record("p.b", "message"))
			w.want("message", `not called, because handlers that it depends on failed permanently: "b"`,
				w.record("p.c", "message"))
			w.want("logged", true, w.hasLogged(`"handler"="p/b" "reason"="create"`, "Handler failed permanently"))
			w.want("two handlers in one line", false, w.hasLogged(`"handler"="p" `, `"handler"="p/b" `))
			p.settle()
			w.wantCalls("rest", "10s create p", "10s create d")
			w.wantClean("all")
		}},
		"InSpiteOfFailures": {"AfterFinished calls a sub-handler when its dependencies are finished, even if they " +
			"failed", func(w *harness) {
			w.compact(onCreate("p", w.steps(nil, sub("c", ok, afterEnd("a", "b"), afterSuccess("a")),
				sub("a", fails(1, later)), sub("b", fails(1, permanentError{}))))).settle()
			w.wantCalls("all", "0s create p", "0s create a", "0s create b", "10s create p", "10s create a",
				"10s create c")
		}},
		"Flushed": {"a flush stores the successes of the dependencies", func(w *harness) {
			var p *process
			flush := func(ctx context.Context, c *handlers.Invocation) error {
				err := c.Writer.Flush(ctx)
				p.kill()
				return err
			}
			first := onCreate("p", w.steps(nil, sub("a", ok), sub("b", flush, afterSuccess("a"))))
			p = w.compact(first)
			p.settle()
			w.wantCalls("first life", "0s create p", "0s create a", "0s create b")
			w.compact(onCreate("p", w.steps(nil, sub("a", ok), sub("b", ok, afterSuccess("a"))))).settle()
			w.wantCalls("second life", "0s create p", "0s create b")
			w.wantClean("all")
		}},
		"NotSelected": {"a sub-handler that does not match is not awaited", func(w *harness) {
			w.compact(onCreate("p", w.steps(nil, sub("b", ok, afterSuccess("a")), sub("a", ok, ifNever)))).settle()
			w.wantCalls("all", "0s create p", "0s create b")
			w.wantClean("all")
		}},
		"OneAtATime": {"each lifecycle calls a dependent even while another sub-handler is retried", func(w *harness) {
			for _, lifecycle := range []handlers.Lifecycle{handlers.ASAP, handlers.OneByOne, handlers.Randomized} {
				started := time.Now()
				w.create(object())
				slow := fails(2, later)
				p := w.compact(onCreate("p", w.steps(&lifecycle, sub("c", ok, afterSuccess("b")),
					sub("a", slow), sub("b", ok, afterSuccess("a")), sub("x", ok))))
				p.settle()
				calls := w.calls()
				subs := slices.DeleteFunc(calls, func(call string) bool { return strings.HasSuffix(call, " p") })
				w.want("calls", 6, len(subs))
				w.want("the end", "b c", ending(subs[4])+" "+ending(subs[5]))
				w.want("time", 20*time.Second, time.Since(started))
				w.want("errors", []error(nil), p.errs)
				w.wantClean("all")
			}
		}},
		"Nested": {"sub-handlers of sub-handlers have dependencies of their own", func(w *harness) {
			inner := w.steps(nil, sub("y", ok, afterSuccess("x")), sub("x", fails(1, later)))
			w.compact(onCreate("p", w.steps(nil, sub("b", ok, afterSuccess("a")), sub("a", inner)))).settle()
			w.wantCalls("all", "0s create p", "0s create a", "0s create x", "10s create p", "10s create a",
				"10s create x", "10s create y", "10s create b")
			w.wantClean("all")
		}},
		"Timeout": {"the timeout of a dependent begins when its wait ends, and survives a restart", func(w *harness) {
			stuck := func(ctx context.Context, _ *handlers.Invocation) error { <-ctx.Done(); return context.Cause(ctx) }
			var started time.Time
			var slow handlers.Func
			registered := onCreate("p", w.steps(nil,
				sub("a", func(ctx context.Context, c *handlers.Invocation) error { return slow(ctx, c) }),
				sub("b", stuck, afterSuccess("a"), timeout(20*time.Second))))
			asKopf := func(all ...*handlers.Handler) *process { return w.startWith(annotationStores, all...) }
			for _, start := range []func(...*handlers.Handler) *process{w.compact, asKopf} {
				w.create(object())
				slow, started = fails(3, later), time.Now()
				p := start(registered)
				time.AfterFunc(35*time.Second, p.kill)
				p.settle()
				time.Sleep(5 * time.Second)
				start(registered).settle()
				w.want("time", 50*time.Second, time.Since(started))
				w.want("the timeout", true, w.hasLogged("failed permanently", `timed out after 20s`))
				w.wantClean("all")
			}
		}},
		"Crash": {"after a crash, unwritten sub-handlers are repeated in dependency order", func(w *harness) {
			registered := onCreate("p", w.steps(nil, sub("c", ok, afterSuccess("b")), sub("a", takes(2*time.Second)),
				sub("b", takes(10*time.Second), afterSuccess("a"))))
			p := w.startWith(annotationStores, registered)
			time.AfterFunc(5*time.Second, p.kill)
			p.settle()
			w.wantCalls("first life", "0s create p", "0s create a", "2s create b")
			time.Sleep(time.Minute)
			w.startWith(annotationStores, registered).settle()
			second := w.calls()
			w.want("second life", []string{"p", "b", "c"}, each(second, ending))
			w.wantClean("all")
		}},
	})
}

// TestDependencyMistakes shows that the parent fails permanently and no sub-handler is called if a dependency can
// never be met.
func TestDependencyMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		subs   []*handlers.Handler
		want   string
	}{
		"Itself": {"a sub-handler that depends on itself is an error",
			[]*handlers.Handler{sub("a", ok, afterSuccess("a"))},
			`sub-handlers of handler "p" wait for one another: "a" after "a"`},
		"Cycle": {"a cycle is an error that lists its members", []*handlers.Handler{
			sub("x", ok, afterSuccess("a")), sub("a", ok, afterSuccess("b")), sub("b", ok, afterEnd("c")),
			sub("c", ok, afterSuccess("a")),
		}, `sub-handlers of handler "p" wait for one another: "a" after "b" after "c" after "a"`},
		"Undeclared": {"a dependency that is not declared is an error", []*handlers.Handler{
			sub("a", ok), sub("b", ok, afterSuccess("a", "aa")),
		}, `sub-handler "b" of handler "p" comes after "aa", which is not declared: declare it before they are ` +
			`run`},
		"UndeclaredOfUnmatching": {"an undeclared dependency is an error even if its dependent does not match",
			[]*handlers.Handler{
				sub("b", ok, afterEnd("aa"), ifNever),
			}, `sub-handler "b" of handler "p" comes after "aa", which is not declared: declare it before they are ` +
				`run`},
	} {
		run(t, map[string]scenario{name: {tc.reason, func(w *harness) {
			p := w.compact(onCreate("p", w.steps(nil, tc.subs...)), onCreate("q", fails(1, temporaryError{})))
			p.step()
			w.wantCalls("first", "0s create p", "0s create q")
			w.want("failed", true, w.record("p", "failure"))
			w.want("message", tc.want, w.record("p", "message"))
			p.settle()
			w.wantClean("all")
		}}})
	}
}

func ending(call string) string { return call[strings.LastIndex(call, " ")+1:] }

func each(calls []string, what func(string) string) (all []string) {
	for _, call := range calls {
		all = append(all, what(call))
	}
	return all
}

package facadetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// recordingTB is a test under observation: it keeps its failures, and judge calls its cleanups.
type recordingTB struct {
	testing.TB
	failures        []string
	cleanups        []func()
	hasFailedBefore bool // before the test began
}

// fatalExit ends a judged test.
type fatalExit struct{}

func (j *recordingTB) Helper()      {}
func (j *recordingTB) Failed() bool { return j.hasFailedBefore || len(j.failures) > 0 }
func (j *recordingTB) Errorf(f string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf(f, args...))
}
func (j *recordingTB) Cleanup(end func()) { j.cleanups = append(j.cleanups, end) }
func (j *recordingTB) Fatal(args ...any) {
	j.failures = append(j.failures, fmt.Sprint(args...))
	panic(fatalExit{})
}
func (j *recordingTB) Fatalf(f string, args ...any) { j.Errorf(f, args...); panic(fatalExit{}) }

// failuresOf runs a test with its cleanups and returns its failures.
func failuresOf(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	j := &recordingTB{TB: t}
	func() {
		defer func() {
			if ended := recover(); ended != nil && ended != any(fatalExit{}) {
				panic(ended)
			}
		}()
		test(j)
	}()
	for i := len(j.cleanups) - 1; i >= 0; i-- {
		j.cleanups[i]()
	}
	return strings.Join(j.failures, "\n")
}

// newGreetingOperator returns an operator that logs the names of config maps, and then calls the function of the test.
func newGreetingOperator(handle func(ctx context.Context) error) *kopf.Operator {
	op := kopf.New("greeter")
	kopf.ForResource(op, "configmaps").OnCreate("greet", func(
		ctx context.Context, c *kopf.Change[*kopf.Unstructured],
	) error {
		log.FromContext(ctx).Info("Hello " + c.Object.GetName())
		if handle == nil {
			return nil
		}
		return handle(ctx)
	})
	return op
}

func TestARunningOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		r := facadetest.Start(t, newGreetingOperator(nil), facadetest.Against(memapi.Config(server)))
		r.Ready()
		if code := r.ExitCode(); code != -1 {
			t.Errorf("the exit code of a running operator must be -1, got %d", code)
		}
		createConfigMap(t, server, "world")
		r.Await("Hello world", time.Minute)
		if err := r.Stop(); err != nil {
			t.Errorf("Stop must not fail: %v", err)
		}
		if err, code := r.Stop(), r.ExitCode(); err != nil || code != 0 {
			t.Errorf("a second Stop must return the same: %v, exit code %d", err, code)
		}
		if !strings.Contains(r.Stderr(), "Hello world") || r.Output() != r.Stderr() || r.Stdout() != "" {
			t.Errorf("the log must be the whole output, which is\n%s\nand to stdout\n%s", r.Output(), r.Stdout())
		}
	})
}

func TestWhatFailsATest(t *testing.T) {
	deaf := func(released <-chan struct{}) func(context.Context) error {
		return func(context.Context) error { <-released; return nil }
	}
	broken := func() *kopf.Operator {
		op := newGreetingOperator(nil)
		op.OnStartup("open", func(context.Context, *kopf.Activity) error {
			return kopf.Permanent(errors.New("the door is locked"))
		})
		return op
	}
	cases := map[string]struct {
		reason string
		test   func(t testing.TB, server *memapi.Server)
		want   []string // in the failure; empty means that the test must not fail
	}{
		"Nothing": {
			reason: "the end of the test stops a running operator",
			test: func(t testing.TB, server *memapi.Server) {
				facadetest.Start(t, newGreetingOperator(nil), facadetest.Against(memapi.Config(server))).Ready()
			},
		},
		"NotReady": {
			reason: "Ready ends the test with the error of an operator that does not start",
			test: func(t testing.TB, server *memapi.Server) {
				facadetest.Start(t, broken(), facadetest.Against(memapi.Config(server))).Ready()
				t.Errorf("the test has gone on")
			},
			want: []string{"the operator has ended before it was ready", "the door is locked", "its last lines:\n"},
		},
		"Unseen": {
			reason: "an operator that ends by itself fails the test",
			test: func(t testing.TB, server *memapi.Server) {
				<-facadetest.Start(t, broken(), facadetest.Against(memapi.Config(server))).Ended()
			},
			want: []string{"the operator has ended by itself", "the door is locked"},
		},
		"Seen": {
			reason: "an error that Stop returns does not fail the test",
			test: func(t testing.TB, server *memapi.Server) {
				r := facadetest.Start(t, broken(), facadetest.Against(memapi.Config(server)))
				<-r.Ended()
				if err := r.Stop(); err == nil || r.ExitCode() != 1 {
					t.Errorf("the error is %v, the exit code %d", err, r.ExitCode())
				}
			},
		},
		"NotWritten": {
			reason: "Await ends the test with the last lines if its text is not written",
			test: func(t testing.TB, server *memapi.Server) {
				r := facadetest.Start(t, newGreetingOperator(nil), facadetest.Against(memapi.Config(server)))
				r.Await("Goodbye", time.Hour)
				t.Errorf("the test has gone on")
			},
			want: []string{`the operator has not written "Goodbye" in 1h0m0s; its last lines:` + "\n", "level=INFO"},
		},
		"Hanging": {
			reason: "a function that ignores its context is reported with its place",
			test: func(t testing.TB, server *memapi.Server) {
				released := make(chan struct{})
				t.Cleanup(func() { close(released) })
				r := facadetest.Start(t, newGreetingOperator(deaf(released)), facadetest.Against(memapi.Config(server)),
					facadetest.StopWithin(time.Second))
				r.Ready()
				createConfigMap(t, server, "world")
				r.Await("Hello world", time.Minute)
			},
			want: []string{
				"the operator has not stopped in 1s: 1 of its functions have not returned",
				"facadetest_test.TestWhatFailsATest", "runner_test.go:",
			},
		},
		"Args": {
			reason: "options of programs are an error for an operator",
			test: func(t testing.TB, server *memapi.Server) {
				facadetest.Start(t, newGreetingOperator(nil), facadetest.Args("run"))
			},
			want: []string{"Args and Env are for StartProgram"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				got := failuresOf(t, func(t testing.TB) { tc.test(t, server) })
				if (got == "") != (len(tc.want) == 0) {
					t.Errorf("%s: got the failure %q", tc.reason, got)
				}
				for _, want := range tc.want {
					if !strings.Contains(got, want) {
						t.Errorf("%s: the failure lacks %q:\n%s", tc.reason, want, got)
					}
				}
				if strings.Contains(got, "has gone on") {
					t.Errorf("%s: the test has gone on", tc.reason)
				}
			})
		})
	}
}

func createConfigMap(t testing.TB, server *memapi.Server, name string) {
	t.Helper()
	if err := newUserClient(t, server).Create(t.Context(), configMap(name)); err != nil {
		t.Fatal(err)
	}
}

func removeConfigMap(t testing.TB, server *memapi.Server, name string) {
	t.Helper()
	if err := newUserClient(t, server).Delete(t.Context(), configMap(name)); err != nil {
		t.Fatal(err)
	}
}

// newUserClient returns a client for everyone except the operator.
func newUserClient(t testing.TB, server *memapi.Server) client.Client {
	t.Helper()
	user, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

package session_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/cmd/demo/session"
)

// The fake kubectl logs its arguments in a file, and passes each verb to the fake operator, which prints the content of
// the verb's file. A verb named in $REFUSE fails.
const kubectl = `#!/bin/sh
echo "$KUBECONFIG: $1 $2" >>calls
case " $REFUSE " in *" $1 "*) echo "refused: $1" >&2; exit 1;; esac
case "$1 $2 $3" in
"apply -f "*/object.yaml) echo 'Handler succeeded {"handler": "one", "reason": "create"}' >>events ;;
"patch -f "*) echo 'Handler succeeded handler=one reason=update' >>events ;;
"delete -f "*) echo '{"msg":"Handler succeeded","reason":"delete"}' >>events ;;
esac
`

func TestDemonstrateFailures(t *testing.T) {
	cases := map[string]struct {
		reason       string
		refuse       string
		operator     string
		firedPattern string
		want         string
	}{
		"Apply": {
			reason: "a cluster that refuses the definitions has nothing to show", refuse: "apply",
			want: "running kubectl apply",
		},
		"Wait": {
			reason: "a definition that is not served in time ends it", refuse: "wait", want: "running kubectl wait",
		},
		"Patch": {
			reason: "an object that cannot be changed ends it", refuse: "patch", want: "running kubectl patch",
		},
		"Silent": {
			reason:   "a handler that does not fire is an error",
			operator: "exec sleep 60", want: `no handler fired for "create"`,
		},
		"Other": {
			reason: "a handler of another reason is not the one", firedPattern: "reason=%s",
			want: `no handler fired for "create"`,
		},
		"Gone": {
			reason: "an operator that ends is not waited for", operator: "echo oh no; exit 3", want: "exit status 3",
		},
		"GoneFine": {reason: "neither is one that ends with success", operator: "exit 0", want: "exit status 0"},
		"Pattern": {reason: "a pattern that does not compile is named", firedPattern: "(%s",
			want: "reading the pattern"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, out := newFakeSession(t, tc.refuse, tc.operator)
			s.FiredPattern = tc.firedPattern
			if strings.HasPrefix(tc.want, "no handler fired") {
				// elsewhere, waiting for too short a time would be the failure
				s.HandlerTimeout = 500 * time.Millisecond
			}
			err := s.Demonstrate(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nDemonstrate(): want an error with %q, got %v\n%s", tc.reason, tc.want, err, out)
			}
		})
	}
}

func TestDemonstrateInterrupted(t *testing.T) {
	s, _ := newFakeSession(t, "", "exec sleep 60")
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Out = &textTrigger{text: "Starting the operator", action: func() { cancel(stop) }}
	if err := s.Demonstrate(ctx); !errors.Is(err, stop) {
		t.Errorf("Demonstrate(): an interruption is a failure, as not everything was seen: want %v, got %v", stop, err)
	}
}

func TestDemonstrate(t *testing.T) {
	s, out := newFakeSession(t, "", "")
	s.Change = `{"spec":{"it":"isn't"}}`
	if err := s.Demonstrate(t.Context()); err != nil {
		t.Fatalf("Demonstrate(): %v\n%s", err, out)
	}
	calls, err := os.ReadFile("calls")
	if err != nil {
		t.Fatal(err)
	}
	if want := "K: apply -k\nK: apply -f\nK: wait customresourcedefinitions\nK: apply -f\nK: patch -f\nK: " +
		"delete -f\n"; string(calls) != want {
		t.Errorf("calls of kubectl with its configuration: want %q, got %q", want, calls)
	}
	requireShown(t, out,
		"\n$ kubectl apply -f object.yaml\n",
		"\n$ kubectl patch -f object.yaml --type merge -p '{\"spec\":{\"it\":\"isn'\\''t\"}}'\n",
		"operator | Handler succeeded handler=one reason=update\n",
		"expected | Handler succeeded.*\\breason\\W+update\\b\n"+
			"seen     | Handler succeeded handler=one reason=update\n",
		"\n$ kubectl delete -f object.yaml",
		"Every handler has fired",
	)
}

// requireShown checks that the texts are shown, in this order.
func requireShown(t *testing.T, out *screen, texts ...string) {
	t.Helper()
	rest := out.String()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("want %q in the rest of what is shown:\n%s\nall of it:\n%s", text, rest, out)
		}
		rest = after
	}
}

// The second operator runs beside the first one, with its own log, until the script stops it.
func TestDemonstrateSecond(t *testing.T) {
	s, out := newFakeSession(t, "", `echo "begins with $0 $1"; trap 'echo ends; exit 0' TERM INT
		tail -n +1 -f events & wait $!`)
	s.Operator = append(s.Operator, "run")
	s.Actions = []session.Action{
		{Verb: "create", Lines: []string{"reason.*create"}},
		{Verb: "second", Args: []string{"--priority=10"}, Lines: []string{"second: begins with run --priority=10"}},
		{Verb: "update", Patch: "{}", Lines: []string{"reason=update", "second: reason=update"}},
		{Verb: "stop second"},
		{Verb: "delete", Lines: []string{"reason.*delete"}},
	}
	if err := s.Demonstrate(t.Context()); err != nil {
		t.Fatalf("Demonstrate(): %v\n%s", err, out)
	}
	requireShown(t, out,
		"$ go -C . run . -c", // the arguments of the pretended operator
		"operator | begins with run \n",
		"$ go -C . run . -c", " run --priority=10\n",
		"second   | begins with run --priority=10\n",
		"$ kubectl patch", "expected | second: reason=update\n", "seen     | Handler succeeded",
		"Stopping the second operator\n", "second   | ends\n", "$ kubectl delete",
	)
}

func TestDemonstrateSecondEnds(t *testing.T) {
	s, out := newFakeSession(t, "", `case "$1" in "") exec tail -n +1 -f events;; esac; exit 7`)
	s.Operator = append(s.Operator, "run")
	s.Actions = []session.Action{{Verb: "second", Args: []string{"-p"}, Lines: []string{"second: never"}}}
	if err := s.Demonstrate(t.Context()); !errors.Is(err, session.ErrOperatorEnded) ||
		!strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("Demonstrate(): want the end of the second operator, got %v\n%s", err, out)
	}
}

// The status of another object is written in the place of its controller.
func TestDemonstrateStatus(t *testing.T) {
	s, out := newFakeSession(t, "", "")
	s.Actions = []session.Action{{Verb: "status", Args: []string{"job/one"}, Patch: "{}"}}
	if err := s.Demonstrate(t.Context()); err != nil {
		t.Fatalf("Demonstrate(): %v\n%s", err, out)
	}
	requireShown(t, out, "$ kubectl patch job/one --subresource=status --type merge -p '{}'\n")
}

// A refused act is shown with the answer that refused it.
func TestDemonstrateRefused(t *testing.T) {
	s, out := newFakeSession(t, "patch", "")
	s.Actions = []session.Action{{Verb: "refuse", Patch: "{}", Lines: []string{"refused: p.tch"}}}
	if err := s.Demonstrate(t.Context()); err != nil {
		t.Fatalf("Demonstrate(): %v\n%s", err, out)
	}
	requireShown(t, out, "$ kubectl patch -f object.yaml --type merge -p '{}' --dry-run=server\n",
		"expected | refused: p.tch\nseen     | refused: patch\n")
}

func TestRun(t *testing.T) {
	s, out := newFakeSession(t, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	s.Out = &textTrigger{next: out, text: "Ctrl-C", action: cancel}
	s.Actions = []session.Action{{Verb: "apply", File: "before.yaml"}, {Verb: "create"},
		{Verb: "apply", File: "after.yaml"}}
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run(): a stopped session does not fail: got %v", err)
	}
	if calls, err := os.ReadFile("calls"); err != nil || strings.Count(string(calls), "K: apply -f\n") != 3 {
		t.Errorf("want three applies: the kind, the object before, the object; got %q, %v", calls, err)
	}
	if want := "export KUBECONFIG=K\n"; !strings.Contains(out.String(), want) {
		t.Errorf("what is shown: want %q in\n%s", want, out)
	}
}

// The URL of the console is shown after all else, also if the operator has logged it before.
func TestRunShowsConsole(t *testing.T) {
	for name, line := range map[string]string{
		"full": `[I] Serving the console url=http://127.0.0.1:43210/console`,
		"JSON": `{"message":"Serving the console","url":"http://127.0.0.1:43210/console"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, out := newFakeSession(t, "", "echo '"+line+"'; exec sleep 60")
			ctx, cancel := context.WithCancel(t.Context())
			s.Out = &textTrigger{next: out, text: "In a browser: http://127.0.0.1:43210/console\n", action: cancel}
			if err := s.Run(ctx); err != nil {
				t.Errorf("Run(): %v", err)
			}
			_, after, _ := strings.Cut(out.String(), "Now it is your turn")
			if !strings.Contains(after, "In a browser") {
				t.Errorf("want the URL after the invitation, got\n%s", out)
			}
		})
	}
}

func TestRunWithoutOperator(t *testing.T) {
	s, _ := newFakeSession(t, "", "exit 3")
	if err := s.Run(t.Context()); !errors.Is(err, session.ErrOperatorEnded) {
		t.Errorf("Run(): want %v, got %v", session.ErrOperatorEnded, err)
	}
	s.Operator = []string{filepath.Join(t.TempDir(), "none")}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "starting the operator") {
		t.Errorf("Run(): want an error of starting, got %v", err)
	}
}

// newFakeSession is a session in a folder of its own, which becomes the current one.
func newFakeSession(t *testing.T, refuse, operator string) (*session.Session, *screen) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the pretended programs are shell scripts")
	}
	folder := t.TempDir()
	t.Chdir(folder)
	t.Setenv("REFUSE", refuse)
	for name, text := range map[string]string{"kubectl": kubectl, "events": "", "calls": ""} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if operator == "" {
		operator = "exec tail -n +1 -f events"
	}
	out := &screen{}
	return &session.Session{
		Kubectl: "./kubectl", Kubeconfig: "K", Scratch: t.TempDir(), Kinds: []string{".", "crd.yaml"}, Example: folder,
		Operator: []string{"sh", "-c", operator}, Change: "{}", Out: out,
	}, out
}

// screen is a buffer for several goroutines.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// textTrigger does something when a text is shown.
type textTrigger struct {
	next   *screen
	text   string
	action func()
}

func (c *textTrigger) Write(p []byte) (int, error) {
	if c.next != nil {
		_, _ = c.next.Write(p)
	}
	if strings.Contains(string(p), c.text) {
		c.action()
	}
	return len(p), nil
}

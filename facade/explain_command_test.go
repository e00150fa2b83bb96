package kopf_test

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// explainedOperator is a running operator, with or without a debug address.
type explainedOperator struct {
	t     *testing.T
	op    *kopf.Operator
	lines chan string
	err   chan error
	stop  context.CancelFunc
}

// runExplaining runs an operator of config maps and calls the function before the start.
func runExplaining(t *testing.T, address string, before func(op *kopf.Operator)) *explainedOperator {
	t.Helper()
	server := memapi.New()
	createNamed(t, server, "first")
	e := &explainedOperator{
		t: t, op: kopf.New("explained.example.org"), lines: make(chan string, 1000), err: make(chan error, 1),
	}
	for _, id := range []string{"provision", "announce"} {
		kopf.ForResource(e.op, "configmaps").OnCreate(id,
			func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil })
	}
	before(e.op)
	ctx, cancel := context.WithCancel(t.Context())
	e.stop = cancel
	t.Cleanup(cancel)
	log := funcr.New(func(_, args string) { e.lines <- args }, funcr.Options{})
	go func() {
		e.err <- e.op.Run(ctx, kopf.RunSettings{
			Config: memapi.Config(server), Log: log, DebugBindAddress: address,
		})
	}()
	return e
}

// waitForLine waits for a line of the log that contains the text.
func (e *explainedOperator) waitForLine(text string) string {
	e.t.Helper()
	for {
		select {
		case line := <-e.lines:
			if strings.Contains(line, text) {
				return line
			}
		case err := <-e.err:
			e.t.Fatalf("the operator has ended before it logged %q: %v", text, err)
		}
	}
}

// end stops the operator, and returns its remaining log lines about explanations and its error.
func (e *explainedOperator) end() (said string, err error) {
	e.stop()
	err = <-e.err
	for len(e.lines) > 0 {
		if line := <-e.lines; strings.Contains(line, "explanations") {
			said += line
		}
	}
	return said, err
}

func withoutChanges(*kopf.Operator) {}

// TestExplainCommandOfARunningOperator shows that the command explain prints the explanation of a running operator.
func TestExplainCommandOfARunningOperator(t *testing.T) {
	e := runExplaining(t, "127.0.0.1:0", withoutChanges)
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(e.waitForLine("Serving explanations"))
	e.waitForLine("Handler succeeded")
	e.waitForLine("Handler succeeded") // the second handler runs after the first one is recorded
	for _, kind := range []string{"configmap", "cm", "configmaps", "ConfigMap"} {
		code, out, errs := execute(t, e.op, "explain", kind, "default/first", "--address", address)
		if code != 0 || !strings.Contains(out, "ConfigMap default/first, as seen by operator explained.example.org") ||
			!strings.Contains(out, "called provision: attempt 1 succeeded") {
			t.Errorf("%s: exit code %d: %s%s", kind, code, out, errs)
		}
	}
	if said, err := e.end(); err != nil || said != "" {
		t.Errorf("the operator ends without an error or a log line: got %v, %s", err, said)
	}
	if code, _, errs := execute(t, e.op, "explain", "cm", "default/first", "--address", address); code != 1 ||
		!strings.Contains(errs, "no operator answers at "+address) {
		t.Errorf("explain fails after the operator has ended: exit code %d: %s", code, errs)
	}
}

// TestExplainAddressThatIsTaken shows that an address that is in use is an error if the user has set it; otherwise
// it is logged.
func TestExplainAddressThatIsTaken(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().String()
	cases := map[string]struct {
		reason   string
		optional bool
		want     string // of the error
	}{
		"chosen": {
			"a requested address that is in use is an error", false, "serving at the debug address " + taken + ": "},
		"usual": {"a default address that is in use is logged", true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := runExplaining(t, "", func(op *kopf.Operator) { kopf.ExplainAt(op, taken, c.optional) })
			if !c.optional {
				if err := <-e.err; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: want %q, got %v", c.reason, c.want, err)
				}
				return
			}
			if line := e.waitForLine("explanations"); !strings.Contains(line, "Not serving explanations") ||
				!strings.Contains(line, `"level"=0`) || !strings.Contains(line, taken) {
				t.Errorf("%s: want one log line at the info level, got %s", c.reason, line)
			}
			<-e.op.Ready()
			if said, err := e.end(); err != nil || said != "" {
				t.Errorf("%s: want one log line and no error, got %v, %s", c.reason, err, said)
			}
		})
	}
}

// TestExplainWithoutAddress shows that explanations are not served without an address.
func TestExplainWithoutAddress(t *testing.T) {
	for name, address := range map[string]string{"not given": "", "off": "0"} {
		t.Run(name, func(t *testing.T) {
			e := runExplaining(t, address, withoutChanges)
			<-e.op.Ready()
			if said, err := e.end(); err != nil || said != "" {
				t.Errorf("want no error and no log line, got %v, %s", err, said)
			}
		})
	}
}

// TestExplainHandlerOfNilOperator shows that a nil operator has no explanations.
func TestExplainHandlerOfNilOperator(t *testing.T) {
	var none *kopf.Operator
	if status, _ := answerTo(none.ExplainHandler(), "/standing"); status != http.StatusNotFound {
		t.Errorf("the handler of a nil operator responds with 404: got %d", status)
	}
}

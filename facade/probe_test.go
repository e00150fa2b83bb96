package kopf_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// reserveAddress returns the URL of an address in use, and a function that releases the address.
func reserveAddress(t *testing.T) (url string, letGo func()) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String() + "/healthz", func() { _ = listener.Close() }
}

// TestLivenessAddressInUse shows that a liveness address in use ends the program with an error.
func TestLivenessAddressInUse(t *testing.T) {
	withoutCluster(t)
	url, letGo := reserveAddress(t)
	defer letGo()
	code, _, errs := execute(t, newWidgetOperator(), "-A", "--kubeconfig", unreachableKubeconfig, "--liveness", url)
	if code != 1 || !strings.Contains(errs, "serving the probes at "+url+": ") ||
		!strings.Contains(errs, "address already in use") {
		t.Errorf("an address in use must be an error: exit code %d: %s", code, errs)
	}
}

// TestWrongLiveness shows that a wrong liveness address is an error of the command line.
func TestWrongLiveness(t *testing.T) {
	code, _, errs := execute(t, newWidgetOperator(), "-A", "-L", "0.0.0.0:8080")
	if code != 2 || !strings.Contains(errs, "-L (--liveness): ") {
		t.Errorf("an address without a scheme must be an error: exit code %d: %s", code, errs)
	}
}

// runUntilURLAnswers runs the operator without a cluster, and returns as soon as the URL answers.
func runUntilURLAnswers(t *testing.T, op *kopf.Operator, url string, flags ...string) (body string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	cmd := op.Command()
	cmd.SetArgs(append(flags, "-A", "--kubeconfig", unreachableKubeconfig, "-q", "--debug-bind-address", "0"))
	cmd.SetErr(&stderr)
	done := make(chan int, 1)
	go func() { done <- kopf.ExitCode(cmd.ExecuteContext(ctx)) }()
	for body == "" {
		select {
		case code := <-done:
			t.Fatalf("exit code %d: %s", code, stderr.String())
		default:
			body = get(t, url)
		}
	}
	return body, func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d: %s", code, stderr.String())
		}
	}
}

// TestLiveness shows that the endpoint answers as long as the operator runs, with or without a cluster.
func TestLiveness(t *testing.T) {
	withoutCluster(t)
	url, letGo := reserveAddress(t)
	op := newWidgetOperator()
	op.OnProbe("b", func(context.Context, *kopf.Activity) (any, error) { return map[string]int{"size": 3}, nil })
	op.OnProbe("a", func(_ context.Context, a *kopf.Activity) (any, error) { return a.ID, nil })
	op.OnProbe("none", func(context.Context, *kopf.Activity) (any, error) { return nil, nil })
	letGo()
	body, end := runUntilURLAnswers(t, op, url, "--liveness", url)
	if want := `{"a":"a","b":{"size":3}}`; body != want {
		t.Errorf("want %s, got %s", want, body)
	}
	end()
	if body := get(t, url); body != "" {
		t.Errorf("the endpoint must not answer after the end of the operator: %s", body)
	}
}

// TestHealthOfPrograms shows that the manager's own endpoints include the checks and the probes of the operator.
func TestHealthOfPrograms(t *testing.T) {
	withoutCluster(t)
	url, letGo := reserveAddress(t)
	op := newWidgetOperator()
	op.OnProbe("db", func(context.Context, *kopf.Activity) (any, error) {
		return nil, kopf.Permanent(fmt.Errorf("it is down"))
	})
	letGo()
	where := strings.TrimSuffix(url, "/healthz")
	_, end := runUntilURLAnswers(t, op, url, "--health-probe-bind-address", strings.TrimPrefix(where, "http://"))
	defer end()
	for path, want := range map[string]string{
		"/healthz":                              "[+]test.example.org/workers ok",
		"/healthz/test.example.org/workers":     "ok",
		"/healthz/test.example.org/probes":      `handler "db" failed: it is down`,
		"/readyz":                               "[-]test.example.org/",
		"/readyz/test.example.org/caches?why":   "ok",
		"/readyz/test.example.org/nothing/here": "not found",
	} {
		if body := get(t, where+path); !strings.Contains(body, want) {
			t.Errorf("%s: want %q, got %q", path, want, body)
		}
	}
}

// get returns the body of the response, or an empty text if the request fails.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

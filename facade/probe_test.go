package facade_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// taken is the URL of an address in use, until that is let go.
func taken(t *testing.T) (url string, letGo func()) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String() + "/healthz", func() { _ = listener.Close() }
}

func TestLivenessAddressInUse(t *testing.T) {
	withoutCluster(t)
	url, letGo := taken(t)
	defer letGo()
	code, _, errs := execute(t, scheming(), "-A", "--kubeconfig", nowhere, "--liveness", url)
	if code != 1 || !strings.Contains(errs, "serving the probes at "+url+": ") ||
		!strings.Contains(errs, "address already in use") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestWrongLiveness(t *testing.T) {
	code, _, errs := execute(t, scheming(), "-A", "-L", "0.0.0.0:8080")
	if code != 2 || !strings.Contains(errs, "-L (--liveness): ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// The endpoint is there for as long as the operator runs, whether or not there is a cluster.
func TestLiveness(t *testing.T) {
	withoutCluster(t)
	url, letGo := taken(t)
	op := scheming()
	op.OnProbe("b", func(context.Context, *kopf.Activity) (any, error) { return map[string]int{"size": 3}, nil })
	op.OnProbe("a", func(_ context.Context, a *kopf.Activity) (any, error) { return a.ID, nil })
	op.OnProbe("none", func(context.Context, *kopf.Activity) (any, error) { return nil, nil })
	letGo()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr bytes.Buffer
	cmd := kopf.NewCommand(op)
	cmd.SetArgs([]string{"-A", "--kubeconfig", nowhere, "-q", "--liveness", url})
	cmd.SetErr(&stderr)
	done := make(chan int)
	go func() { done <- kopf.ExitCode(cmd.ExecuteContext(ctx)) }()
	body := ""
	for body == "" && t.Context().Err() == nil {
		select {
		case code := <-done:
			t.Fatalf("exit code %d: %s", code, stderr.String())
		default:
			body = get(t, url)
		}
	}
	if want := `{"a":"a","b":{"size":3}}`; body != want {
		t.Errorf("want %s, got %s", want, body)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if body := get(t, url); body != "" {
		t.Errorf("it has ended, and the endpoint answers: %s", body)
	}
}

// get is the answer; empty if there is none.
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

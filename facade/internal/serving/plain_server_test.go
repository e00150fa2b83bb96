package serving_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// TestPlainServer shows that a stopping server answers the requests that have arrived, and accepts no others.
func TestPlainServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	taken := serving.NewPlainServer(address)
	if err := taken.Start(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("a taken port must be an error, got %v", err)
	}
	if taken.StartedChecker()(nil) == nil {
		t.Error("a server that does not listen must not count as started")
	}
	_ = listener.Close()

	server := serving.NewPlainServer(address)
	asked, finish := make(chan struct{}), make(chan struct{})
	server.Register("/v", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-finish
		_, _ = io.WriteString(w, "here")
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	for server.StartedChecker()(nil) != nil {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
	}
	answers := make(chan string, 1)
	go func() { answers <- get("http://" + address + "/v") }()
	<-asked
	stop()
	close(finish)
	if got := <-answers; got != "here" {
		t.Errorf("want the answer of the open request, got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("a stop must not be an error, got %v", err)
	}
	if got := get("http://" + address + "/v"); !strings.Contains(got, "refused") {
		t.Errorf("a stopped server must not listen, got %q", got)
	}
}

// get returns the answer or the error as a text.
func get(url string) string {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

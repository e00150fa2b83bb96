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

// What has come is answered, also at the end; nothing comes after it.
func TestPlainServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	taken := serving.NewPlainServer(address)
	if err := taken.Start(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("the port is taken: got the error %v", err)
	}
	if taken.StartedChecker()(nil) == nil {
		t.Error("it does not listen")
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
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end is no error: got %v", err)
	}
	if got := get("http://" + address + "/v"); !strings.Contains(got, "refused") {
		t.Errorf("nobody listens: got %q", got)
	}
}

// get gives the answer, or the error.
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

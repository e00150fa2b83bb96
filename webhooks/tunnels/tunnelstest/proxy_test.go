package tunnelstest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels/tunnelstest"
)

func TestProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan string, 2), make(chan error, 1)
	proxy := tunnelstest.New()
	go func() {
		local := tunnels.Local{Scheme: "https", Address: strings.TrimPrefix(server.URL, "https://"), Path: "/secret"}
		ended <- proxy.Run(ctx, local, func(c admissionregistrationv1.WebhookClientConfig) { told <- *c.URL })
	}()
	first := <-told
	get(t, server.Client(), first, true)
	proxy.Move()
	second := <-told
	get(t, server.Client(), second, true)
	server.Client().CloseIdleConnections()
	get(t, server.Client(), first, false)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the stop must not return an error: got %v", err)
	}
	get(t, server.Client(), second, false)
}

// get sends a request through the tunnel.
func get(t *testing.T, client *http.Client, url string, open bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if (err == nil) != open {
		t.Fatalf("%s: got the error %v", url, err)
	}
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "/secret/v" {
		t.Errorf("want the path behind the tunnel, got %q and the error %v", text, err)
	}
}

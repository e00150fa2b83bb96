package transport_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// TestWrap shows the order of wrapped functions, and that the given client stays unchanged.
func TestWrap(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var passed []string
	noting := func(name string) func(transport.RoundTripFunc) transport.RoundTripFunc {
		return func(next transport.RoundTripFunc) transport.RoundTripFunc {
			return func(r *http.Request) (*http.Response, error) {
				passed = append(passed, name)
				return next(r)
			}
		}
	}
	given := &http.Client{}
	response, err := transport.Wrap(given, noting("first"), noting("last")).Get(server.URL) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"last", "first"}, passed); d != "" {
		t.Errorf("the last function is not passed first: -want, +got:\n%s", d)
	}
	if given.Transport != nil {
		t.Error("the given client was changed, although others use it")
	}
}

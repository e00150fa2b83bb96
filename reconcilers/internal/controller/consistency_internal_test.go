package controller

import (
	"net/http"
	"testing"
)

type sending func(r *http.Request)

func (f sending) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return &http.Response{Body: http.NoBody}, nil
}

// TestConsistentLists shows how the first list of an informer becomes a consistent read.
func TestConsistentLists(t *testing.T) {
	for name, c := range map[string]struct{ reason, query, want string }{
		"AnyState": {"version 0 allows a state of the past, so it is removed", "resourceVersion=0", ""},
		"Match": {
			"a version match without a version is invalid, so both are removed",
			"resourceVersion=0&resourceVersionMatch=NotOlderThan", "",
		},
		"Stream": {
			"a streaming list keeps its version match, which the API server requires",
			"resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true",
			"resourceVersionMatch=NotOlderThan&sendInitialEvents=true",
		},
		"Version": {"a watch keeps the version from which it continues",
			"resourceVersion=5&watch=1", "resourceVersion=5&watch=1"},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			var sent string
			send := forceConsistentList(sending(func(r *http.Request) { sent = r.URL.RawQuery }).RoundTrip)
			asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/widgets?"+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := send(asked)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if sent != c.want || asked.URL.RawQuery != c.query {
				t.Errorf("sent %q, want %q; the request itself has %q", sent, c.want, asked.URL.RawQuery)
			}
		})
	}
}

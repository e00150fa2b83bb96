package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestReach(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		want   bool
	}{
		"Forbidden": {reason: "a proxy that lets nothing through answers, too", status: http.StatusForbidden},
		"Missing":   {reason: "a mirror without the database is of no use", status: http.StatusNotFound},
		"Broken":    {reason: "a check that is bound to fail is not begun", status: http.StatusBadGateway},
		"There":     {reason: "the database answers", status: http.StatusOK, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }),
			)
			defer server.Close()
			if err := reach(t.Context(), server.URL, time.Minute); (err == nil) != tc.want {
				t.Errorf(
					"%s\nreach(%s): want reachable: %t, got %v", tc.reason, http.StatusText(tc.status), tc.want, err,
				)
			}
		})
	}
}

func TestReachWithoutAnswer(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	if err := reach(t.Context(), server.URL, time.Millisecond); err == nil {
		t.Error("reach(silent server): want an error after the time-out, got none")
	}
	if err := reach(t.Context(), ":", time.Minute); err == nil {
		t.Error("reach(no URL): want an error, got none")
	}
	if err := reach(t.Context(), "file:///anywhere", time.Minute); err != nil {
		t.Errorf("reach(file): want no error, got %v", err)
	}
}

package serving_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// reviewServer answers reviews: the token "reader" may get /metrics, "stranger" may not, and others are unknown.
type reviewServer struct {
	isDown   bool
	requests int
	logged   []string
}

// RoundTrip answers one request.
func (s *reviewServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	if s.isDown {
		return nil, errors.New("the API server is down")
	}
	var answer any
	switch body := json.NewDecoder(r.Body); {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		if err := body.Decode(&review); err != nil {
			return nil, err
		}
		review.Status.Authenticated = review.Spec.Token == "reader" || review.Spec.Token == "stranger"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token, UID: "7", Groups: []string{"g"},
			Extra: map[string]authenticationv1.ExtraValue{"e": {"v"}},
		}
		answer = review
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		if err := body.Decode(&review); err != nil {
			return nil, err
		}
		asked, path := review.Spec, review.Spec.NonResourceAttributes
		review.Status.Allowed = asked.User == "reader" && asked.UID == "7" && asked.Groups[0] == "g" &&
			asked.Extra["e"][0] == "v" && path.Path == "/metrics" && path.Verb == "get"
		answer = review
	default:
		return nil, fmt.Errorf("unexpected request: %s", r.URL)
	}
	text, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))), Request: r,
	}, err
}

// guarded returns a handler behind the filter.
func (s *reviewServer) guarded(t *testing.T) http.Handler {
	t.Helper()
	log := funcr.New(func(_, args string) { s.logged = append(s.logged, args) }, funcr.Options{})
	config := &rest.Config{Host: "https://api", ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := serving.MetricsFilter(log)(config, &http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "kopf_paused 0")
	}))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// read requests the metrics with this Authorization header.
func read(handler http.Handler, authorization string) (code int, text string) {
	request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestMetricsFilter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		authorization string
		isDown        bool
		code          int
		text          string
		requests      int
	}{
		"Allowed":      {"a permitted user reads the metrics", "Bearer reader", false, 200, "kopf_paused", 2},
		"LowerCase":    {"the scheme has no case", "bearer  reader ", false, 200, "kopf_paused", 2},
		"NoToken":      {"without a token, nothing is served or reviewed", "", false, 401, "need a bearer token", 0},
		"EmptyToken":   {"an empty token counts as missing", "Bearer  ", false, 401, "need a bearer token", 0},
		"Basic":        {"other schemes are refused", "Basic reader", false, 401, "need a bearer token", 0},
		"UnknownToken": {"an invalid token is refused", "Bearer nobody", false, 401, "not valid", 1},
		"NotAllowed":   {"a user without the permission is refused", "Bearer stranger", false, 403, `"stranger"`, 2},
		"Down":         {"without the API server, everyone is refused", "Bearer reader", true, 500, "see the log", 1},
	} {
		t.Run(name, func(t *testing.T) {
			api := &reviewServer{isDown: tc.isDown}
			code, text := read(api.guarded(t), tc.authorization)
			if code != tc.code || !strings.Contains(text, tc.text) {
				t.Errorf("%s: got %d %q, want %d with %q", tc.reason, code, text, tc.code, tc.text)
			}
			if api.requests != tc.requests {
				t.Errorf("%s: %d requests, want %d", tc.reason, api.requests, tc.requests)
			}
			log := strings.Join(api.logged, "\n")
			if tc.isDown != strings.Contains(log, "create tokenreviews") || strings.Contains(log, "reader\"") {
				t.Errorf("%s: the log says what to do, without the token: %q", tc.reason, log)
			}
		})
	}
}

// TestMetricsDecisionsExpire shows how long decisions last, by the number of requests.
func TestMetricsDecisionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &reviewServer{}
		handler := api.guarded(t)
		for _, step := range []struct {
			reason        string
			after         time.Duration
			isDown        bool
			token         string
			code          int
			requests, log int
		}{
			{"the first request is reviewed", 0, false, "reader", 200, 2, 0},
			{"a permission is remembered", 59 * time.Second, true, "reader", 200, 2, 0},
			{"for a minute", 2 * time.Second, true, "reader", 500, 3, 1},
			{"an error is not remembered, and logged once in a minute", time.Second, true, "reader", 500, 4, 1},
			{"a refusal is remembered", time.Second, false, "stranger", 403, 6, 1},
			{"a refusal is remembered", 9 * time.Second, false, "stranger", 403, 6, 1},
			{"for ten seconds", 2 * time.Second, false, "stranger", 403, 8, 1},
		} {
			time.Sleep(step.after)
			api.isDown = step.isDown
			code, _ := read(handler, "Bearer "+step.token)
			if code != step.code || api.requests != step.requests || len(api.logged) != step.log {
				t.Errorf("%s: got %d after %d requests and %d lines, want %d, %d, %d", step.reason, code, api.requests,
					len(api.logged), step.code, step.requests, step.log)
			}
		}
	})
}

// TestMetricsReviewsAreFew shows that unknown tokens cannot cause many requests to the API server.
func TestMetricsReviewsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &reviewServer{}
		handler, begin := api.guarded(t), time.Now()
		for i := range 60 {
			read(handler, fmt.Sprintf("Bearer %d", i))
		}
		if took := time.Since(begin); took < 9*time.Second {
			t.Errorf("60 unknown tokens are reviewed at 5 in a second after the first 10, not in %s", took)
		}
	})
}

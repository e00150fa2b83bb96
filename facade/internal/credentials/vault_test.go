package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

func TestRequestsOutliveTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		p, err := start(t.Context(), t, giveTokens(s, "a", "b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		for round, token := range []string{"a", "b", "c"} {
			s.allow(token)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					body := fmt.Sprintf("%d of round %d", i, round)
					if code, got, err := p.send(t.Context(), "/apis", body); code != 200 || got != body || err != nil {
						t.Errorf("want the body of the request, got %d, %q, error %v", code, got, err)
					}
				})
			}
			all.Wait()
		}
		if p.loginCount != 3 || p.finalErr != nil {
			t.Errorf("%d logins, want one for each token; failed: %v", p.loginCount, p.finalErr)
		}
		checks := slices.DeleteFunc(s.requests(), func(r string) bool { return !strings.HasPrefix(r, "api/api ") })
		if want := []string{"api/api a", "api/api b"}; !slices.Equal(want, checks) {
			t.Errorf("each refused token must be checked once, got %v", checks)
		}
	})
}

func TestCredentialsThatNeverWork(t *testing.T) {
	tests := map[string]struct {
		reason string
		give   func(s *server) func(n int) (map[string]*credentials.Info, error)
		want   string
		logins int
	}{
		"Same": {
			"the login fails if it returns the refused credentials again",
			func(s *server) func(int) (map[string]*credentials.Info, error) {
				return giveTokens(s, "x")
			}, `handler "fn": the credentials are those that the API server has refused`, 2,
		},
		"AlwaysOthers": { // D-login-limit
			"the login fails after four logins with different refused credentials", func(
				s *server,
			) func(int) (map[string]*credentials.Info, error) {
				return func(n int) (map[string]*credentials.Info, error) {
					return map[string]*credentials.Info{"fn": s.info(fmt.Sprint("x", n))}, nil
				}
			}, "has refused the credentials of 4 logins in a row", 4,
		},
		"TheLastThree": {
			"the login fails if it returns formerly refused credentials",
			func(s *server) func(int) (map[string]*credentials.Info, error) {
				return giveTokens(s, "x", "y", "z", "x")
			}, `handler "fn": the credentials are those that the API server has refused`, 4,
		},
		"Failing": {
			"an error of the second login is returned",
			func(s *server) func(int) (map[string]*credentials.Info, error) {
				return func(n int) (map[string]*credentials.Info, error) {
					if n > 1 {
						return nil, errors.New("boo")
					}
					return map[string]*credentials.Info{"fn": s.info("x")}, nil
				}
			}, "boo", 2,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer("good")
				p, err := start(t.Context(), t, tc.give(s))
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = p.send(t.Context(), "/apis", "")
				synctest.Wait()
				for _, err := range []error{err, p.finalErr} {
					if err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Errorf("%s: want %q, got: %v", tc.reason, tc.want, err)
					}
				}
				if p.loginCount != tc.logins {
					t.Errorf("%s: %d logins, want %d", tc.reason, p.loginCount, tc.logins)
				}
				before := len(s.requests())
				if _, _, err := p.send(t.Context(), "/apis", ""); err == nil || len(s.requests()) != before {
					t.Errorf("%s: no request must be sent after the failure, got error %v", tc.reason, err)
				}
			})
		})
	}
}

// TestRefusalsOfOthers shows that a refusal of one path with valid credentials is an answer like any other:
// D-login-check.
func TestRefusalsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		s.forbiddenPath = "/apis/odd"
		p, err := start(t.Context(), t, giveTokens(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		code, _, err := p.send(t.Context(), "/apis/odd", "")
		if code != http.StatusUnauthorized || err != nil || p.loginCount != 1 || p.finalErr != nil {
			t.Errorf("got %d, error %v, %d logins, failed: %v", code, err, p.loginCount, p.finalErr)
		}
		want := []string{"api/apis/odd a", "api/api a", "api/apis/odd a", "api/api a"}
		if d := cmp.Diff(want, s.requests()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

func TestExpiration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		expired := func(n int) (map[string]*credentials.Info, error) {
			info := s.info([]string{"a", "b", "b"}[n-1])
			info.Expiration = time.Now().Add(time.Minute)
			return map[string]*credentials.Info{"fn": info}, nil
		}
		p, err := start(t.Context(), t, expired)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // the last token is the same, but lives longer
			if code, _, err := p.send(t.Context(), "/apis", ""); code != 200 || err != nil {
				t.Fatal(code, err)
			}
			time.Sleep(time.Minute)
		}
		want := []string{"api/apis a", "api/apis b", "api/apis b"}
		if d := cmp.Diff(want, s.requests()); d != "" || p.loginCount != 3 {
			t.Errorf("%d logins, want 3 without a refused request, -want, +got:\n%s", p.loginCount, d)
		}
	})
}

// TestExpirationWhileTheServerIsDown shows that an unreachable server does not count against the credentials, however
// often they expire.
func TestExpirationWhileTheServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		s.downErr = errors.New("down")
		p, err := start(t.Context(), t, func(int) (map[string]*credentials.Info, error) {
			info := s.info("a")
			info.Expiration = time.Now().Add(time.Minute)
			return map[string]*credentials.Info{"fn": info}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, _, err := p.send(t.Context(), "/apis", ""); !errors.Is(err, s.downErr) {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if p.finalErr != nil {
			t.Error(p.finalErr)
		}
	})
}

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("low")
		p, err := start(t.Context(), t, func(int) (map[string]*credentials.Info, error) {
			high, low := s.info("high"), s.info("low")
			high.Priority, low.Priority, low.Server = 20, 10, "http://other/path"
			high.DefaultNamespace, low.DefaultNamespace = "high", "low"
			return map[string]*credentials.Info{"a": low, "b": high, "none": nil}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.defaultNamespace(); got != "high" {
			t.Errorf("the default namespace must be that of the credentials in use, got %q", got)
		}
		if code, _, err := p.send(t.Context(), "/apis", ""); code != 200 || err != nil || p.loginCount != 1 {
			t.Errorf("want success without a login, got %d, error %v, %d logins", code, err, p.loginCount)
		}
		if got := p.defaultNamespace(); got != "low" {
			t.Errorf("the default namespace must be that of the credentials in use, got %q", got)
		}
		want := []string{"api/apis high", "api/api high", "other/path/apis low"}
		if d := cmp.Diff(want, s.requests()); d != "" {
			t.Errorf("credentials of lower priority must be used before a login, at their own server; -want, +got:\n%s",
				d)
		}
	})
}

// TestEndsWhileWaiting shows that a waiting request ends with its own context, and a login with that of the program.
func TestEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		ctx, exit := context.WithCancel(t.Context())
		p, err := start(ctx, t, func(n int) (map[string]*credentials.Info, error) {
			if n > 1 {
				<-ctx.Done()
				return nil, fmt.Errorf("exiting: %w", ctx.Err())
			}
			return map[string]*credentials.Info{"fn": s.info("a")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.allow()
		asked, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := p.send(asked, "/apis", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the request must end at its own deadline: %v", err)
		}
		time.AfterFunc(time.Minute, exit)
		if _, _, err := p.send(t.Context(), "/apis", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("the request must end when the program exits: %v", err)
		}
		synctest.Wait()
		if p.loginCount != 2 || p.finalErr != nil {
			t.Errorf("%d logins; an exit must not be a failure: %v", p.loginCount, p.finalErr)
		}
	})
}

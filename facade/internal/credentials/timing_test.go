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

// TestManyWaitForSlowLogin shows that many waiting requests cause one login, and that none of them fails.
func TestManyWaitForSlowLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		give := giveTokens(s, "a", "b")
		p, err := start(t.Context(), t, func(n int) (map[string]*credentials.Info, error) {
			time.Sleep(10 * time.Second)
			return give(n)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.allow("b")
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond) // before, during and after the login
				if code, _, err := p.send(t.Context(), "/apis", "body"); code != http.StatusOK || err != nil {
					t.Errorf("request %d: %d, error %v", i, code, err)
				}
			})
		}
		all.Wait()
		checks := slices.DeleteFunc(s.requests(), func(r string) bool { return !strings.HasPrefix(r, "api/api ") })
		if want := []string{"api/api a"}; p.loginCount != 2 || p.finalErr != nil || !slices.Equal(want, checks) {
			t.Errorf("%d logins, checks %q, failed: %v", p.loginCount, checks, p.finalErr)
		}
	})
}

// TestLateRefusal shows that a refusal of former credentials does not affect newer ones.
func TestLateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("b")
		s.slowPath = "/slow"
		p, err := start(t.Context(), t, giveTokens(s, "a", "b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		var late sync.WaitGroup
		for range 5 {
			late.Go(func() {
				if code, _, err := p.send(t.Context(), "/slow", ""); code != http.StatusOK || err != nil {
					t.Errorf("a late request must be sent again: %d, error %v", code, err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		for range 5 {
			if code, _, err := p.send(t.Context(), "/apis", ""); code != http.StatusOK || err != nil {
				t.Errorf("a request after the login: %d, error %v", code, err)
			}
		}
		late.Wait()
		refused := slices.DeleteFunc(s.requests(), func(r string) bool { return strings.HasSuffix(r, " b") })
		want := append(slices.Repeat([]string{"api/slow a"}, 5), "api/apis a", "api/api a")
		if d := cmp.Diff(want, refused); d != "" || p.loginCount != 2 {
			t.Errorf("%d logins; the new credentials must stay in use, -want, +got:\n%s", p.loginCount, d)
		}
	})
}

// TestRefusedWrites shows that a user without the right to write gets each refusal as an answer, without a new login.
func TestRefusedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		s.forbiddenPath = "/apis/write"
		p, err := start(t.Context(), t, giveTokens(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			path, want := "/apis/write", http.StatusUnauthorized
			if n%2 == 0 {
				path, want = "/apis/read", http.StatusOK
			}
			if code, _, err := p.send(t.Context(), path, ""); code != want || err != nil {
				t.Fatalf("%s: %d, error %v", path, code, err)
			}
		}
		if most := 50 + 50*4; len(s.requests()) > most || p.loginCount != 1 || p.finalErr != nil {
			t.Errorf("%d requests, want at most %d; %d logins, failed: %v", len(s.requests()), most, p.loginCount,
				p.finalErr)
		}
	})
}

// TestExpiredLater shows that credentials of a second login that have already expired end the program like refused
// ones.
func TestExpiredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		p, err := start(t.Context(), t, func(n int) (map[string]*credentials.Info, error) {
			info := s.info(fmt.Sprint("ab"[n-1 : n]))
			info.Expiration = time.Now().Add(time.Duration(3-2*n) * time.Minute)
			return map[string]*credentials.Info{"fn": info}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		_, _, err = p.send(t.Context(), "/apis", "")
		synctest.Wait()
		for _, err := range []error{err, p.finalErr} {
			if err == nil || !strings.Contains(err.Error(), `handler "fn": the credentials have expired at `) {
				t.Errorf("want an error about the expiration, got %v", err)
			}
		}
		if p.loginCount != 2 {
			t.Errorf("%d logins, want 2", p.loginCount)
		}
	})
}

// TestRefusedByServerThatGoesDown shows that a refusal whose check gets no answer is returned and does not cause a
// login.
func TestRefusedByServerThatGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		s.forbiddenPath = "/apis"
		p, err := start(t.Context(), t, giveTokens(s, "a"))
		if err != nil {
			t.Fatal(err)
		}
		s.apiErr = errors.New("connection reset")
		code, _, err := p.send(context.WithoutCancel(t.Context()), "/apis", "")
		if code != http.StatusUnauthorized || err != nil || p.loginCount != 1 || p.finalErr != nil {
			t.Errorf("got %d, error %v, %d logins, failed: %v", code, err, p.loginCount, p.finalErr)
		}
	})
}

// TestReplacedSession shows that a request whose credentials are valid at its first refusal, and replaced at its second
// one, is sent again with the new ones: the second refusal is not an answer to them.
func TestReplacedSession(t *testing.T) {
	const second = 2*time.Hour + 3*time.Second // the second refusal arrives, and its check takes a second
	for name, tc := range map[string]struct {
		reason           string
		expiresAfter, at time.Duration // when other requests come
	}{
		"BeforeTheRefusal": {"another refused request has replaced them", 10 * time.Hour, 90 * time.Minute},
		"DuringTheCheck": {"they expire while they are checked", second + 500*time.Millisecond,
			second + 600*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer("a")
				s.forbiddenPath, s.slowPath = "/apis/odd", "/apis/odd"
				first := s.info("a")
				first.Expiration = time.Now().Add(tc.expiresAfter)
				p, err := start(t.Context(), t, func(n int) (map[string]*credentials.Info, error) {
					return map[string]*credentials.Info{"fn": []*credentials.Info{first, s.info("b")}[min(n, 2)-1]}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				all.Go(func() {
					if code, _, err := p.send(t.Context(), "/apis/odd", ""); code != http.StatusOK || err != nil {
						t.Errorf("%s: got %d, error %v", tc.reason, code, err)
					}
				})
				all.Go(func() {
					time.Sleep(90 * time.Minute)
					s.allow("b")
					s.mu.Lock()
					s.forbiddenPath = ""
					s.mu.Unlock()
					time.Sleep(tc.at - 90*time.Minute)
					if code, _, err := p.send(t.Context(), "/apis", ""); code != http.StatusOK || err != nil {
						t.Errorf("another request: got %d, error %v", code, err)
					}
				})
				all.Wait()
				if p.loginCount != 2 {
					t.Errorf("%s: %d logins, want 2", tc.reason, p.loginCount)
				}
			})
		})
	}
}

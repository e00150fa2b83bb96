package kopf_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// guard forwards the requests that have the current token, and refuses all others.
type guard struct {
	server      http.RoundTripper
	mu          sync.Mutex
	token       string
	deniedCount int
}

func (g *guard) change(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = token
}

// RoundTrip forwards or refuses the request.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	welcome := r.Header.Get("Authorization") == "Bearer "+g.token
	if !welcome {
		g.deniedCount++
	}
	g.mu.Unlock()
	if !welcome {
		return &http.Response{
			StatusCode: http.StatusUnauthorized, Request: r, Header: http.Header{}, Body: http.NoBody,
		}, nil
	}
	return g.server.RoundTrip(r)
}

// info returns credentials with the token.
func (g *guard) info(token string) *kopf.ConnectionInfo {
	return &kopf.ConnectionInfo{Token: token, Config: memapi.Config(g)}
}

// runCommand runs the operator as Main does, until it ends.
func runCommand(ctx context.Context, op *kopf.Operator, args ...string) (code int, stderr string) {
	var written lockedBuffer // a handler that was abandoned may still log when the program has ended
	cmd := op.Command()
	cmd.SetArgs(append([]string{"-A", "--verbose", "--debug-bind-address", "0"}, args...))
	cmd.SetErr(&written)
	code = kopf.ExitCode(cmd.ExecuteContext(ctx))
	return code, written.String()
}

// startCommand runs the operator as Main does, until stop is called.
func startCommand(t *testing.T, op *kopf.Operator, args ...string) (stop func() (code int, stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		code   int
		stderr string
		ended  sync.WaitGroup
	)
	ended.Go(func() { code, stderr = runCommand(ctx, op, args...) })
	return func() (int, string) {
		cancel()
		ended.Wait()
		return code, stderr
	}
}

// lockedBuffer can be written to while it is read.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the text.
func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

// String returns the text so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// calls counts calls by handler and object.
type calls struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *calls) add(id, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[id+" "+name]++
}

func (c *calls) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.count)
}

func numbered(i int) map[string]any {
	object := body(map[string]any{"size": int64(1)})
	object["metadata"] = map[string]any{"namespace": "ns", "name": fmt.Sprint("w", i), "uid": fmt.Sprint("uid-", i)}
	return object
}

// TestLoginsThatFail shows that unusable credentials end the program with a message.
func TestLoginsThatFail(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	g := &guard{server: server, token: "good"}
	cases := map[string]struct {
		reason       string
		login        func(ctx context.Context) (*kopf.ConnectionInfo, error)
		want         string
		wantDuration time.Duration
	}{
		"garbage": {"an invalid server URL is an error that names the field",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				return &kopf.ConnectionInfo{Server: "://"}, nil
			}, `handler "fn": the credentials make no sense: field Server: "://" is not a URL`, 0},
		"nothing": {"it is an error if no handler returns credentials",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				return nil, nil
			},
			`logging in: handler "fn": no credentials were given`, 0},
		"panic": {"a panic of a login handler is an ordinary error",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				panic("boo")
			},
			`login: handler "fn" failed: gave up after 1 attempt: panic: boo`, 0},
		"permanent": {"a permanent error of a login handler ends the program",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				return nil, kopf.Permanent(fmt.Errorf("no ticket"))
			}, `operator "test.example.org": login: handler "fn" failed: no ticket`, 0},
		"refused": {"a login that returns the refused credentials again ends the program",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				return g.info("bad"), nil
			}, `no credentials any more: logging in: handler "fn": the credentials are those that the`, time.Second},
		"hanging": {"a login handler that does not return is abandoned",
			func(context.Context) (*kopf.ConnectionInfo, error) {
				time.Sleep(time.Hour)
				return nil, nil
			}, `handler "fn" is abandoned`, 35 * time.Second},
		"obeying": {"an exit during the login is graceful", func(ctx context.Context) (*kopf.ConnectionInfo, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "", 30 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op, began := newWidgetOperator(), time.Now()
				var called atomic.Int64
				op.OnLogin("fn", func(ctx context.Context, _ *kopf.Activity) (*kopf.ConnectionInfo, error) {
					called.Add(1)
					return c.login(ctx)
				}, kopf.Retries(1))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(30*time.Second, cancel)
				code, stderr := runCommand(ctx, op)
				if wrong := c.want != ""; !strings.Contains(stderr, c.want) || (code == 1) != wrong {
					t.Errorf("%s: exit code %d, want %q, got:\n%s", c.reason, code, c.want, stderr)
				}
				if n := called.Load(); n > 2 {
					t.Errorf("%s: the login handler was called in a loop, %d times", c.reason, n)
				}
				if took := time.Since(began); took != c.wantDuration {
					t.Errorf("%s: the program took %s, want %s", c.reason, took, c.wantDuration)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestNoLoginInAManager shows that OnLogin is an error in a manager of another program.
func TestNoLoginInAManager(t *testing.T) {
	op := newCreationOperator(succeed)
	op.OnLogin("fn", kopf.LoginWithKubeconfig)
	err := op.SetupWithManager(newManager(t, newScheme(t)))
	if err == nil || !strings.Contains(err.Error(), `OnLogin("fn"): only kopf.Main logs in`) {
		t.Errorf("OnLogin must be an error in a manager, whose connection is given: %v", err)
	}
}

// TestLoginFunctions shows that the functions for logins are handlers, and can be called by handlers.
func TestLoginFunctions(t *testing.T) {
	withoutCluster(t)
	for _, login := range []func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error){
		kopf.LoginWithKubeconfig, kopf.LoginWithServiceAccount,
	} {
		if info, err := login(t.Context(), nil); info != nil || err != nil {
			t.Errorf("missing credentials must not be an error: %v, %v", info, err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join("internal", "commandline", "testdata", "nowhere.yaml"))
	info, err := kopf.LoginWithKubeconfig(t.Context(), nil)
	if err != nil || info == nil || info.Server != "http://127.0.0.1:1" || info.Priority != 10 {
		t.Errorf("the kubeconfig of the environment must be used: got %+v, error %v", info, err)
	}
	op := newWidgetOperator()
	op.OnLogin("file", kopf.LoginWithKubeconfig, kopf.Retries(1))
	missing := filepath.Join(t.TempDir(), "missing")
	if code, _, errs := execute(t, op, "-A", "--kubeconfig", missing); code != 1 || !strings.Contains(errs, missing) {
		t.Errorf("the flag must override the environment, exit code %d: %s", code, errs)
	}
}

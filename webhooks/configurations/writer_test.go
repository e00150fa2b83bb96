package configurations_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

var (
	validatingHook = configurations.Hook{ID: "v"}
	mutatingHook   = configurations.Hook{ID: "m", Mutating: true}
	persistentHook = configurations.Hook{ID: "p", Persistent: true}
)

// foreign returns an entry of another operator.
func foreign() map[string]any {
	return map[string]any{"name": "theirs.example.com", "clientConfig": map[string]any{"url": "https://there"}}
}

func sharedConfiguration(annotations map[string]any, entries ...any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "shared", "uid": "1", "annotations": annotations}, "webhooks": entries,
	}
}

func requireEntries(t *testing.T, reason string, server *memapi.Server, wanted ...string) {
	t.Helper()
	if delta := cmp.Diff(wanted, names(t, server, validatingResource)); delta != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, delta)
	}
}

func TestWriterKeepsToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, sharedConfiguration(map[string]any{"theirs": "x"}, foreign()))
		p := start(t, server, options("a", 1), validatingHook, mutatingHook, persistentHook)
		requireEntries(t, "the entries must be added", server, "theirs.example.com", "v.ops.example.org",
			"p.ops.example.org")
		if got := names(t, server, mutatingResource); !cmp.Equal(got, []string{"m.ops.example.org"}) {
			t.Errorf("the object for mutating handlers must be created: got %v", got)
		}
		object := server.Object(validatingResource, "", "shared")
		if delta := cmp.Diff(any(foreign()), object["webhooks"].([]any)[0]); delta != "" {
			t.Errorf("the entries of others must not change: -want, +got:\n%s", delta)
		}
		p.stop(t)
		requireEntries(t, "the persistent entry must stay", server, "theirs.example.com", "p.ops.example.org")
		p = start(t, server, options("b", 2), validatingHook)
		requireEntries(t, "entries that are no longer declared must be removed",
			server, "theirs.example.com", "v.ops.example.org")
		p.stop(t)
		requireEntries(t, "the last process must remove its entries", server, "theirs.example.com")
		got := read(t, server.Object(validatingResource, "", "shared")).Annotations
		if delta := cmp.Diff(map[string]string{"theirs": "x"}, got); delta != "" {
			t.Errorf("want the annotations of others alone: -want, +got:\n%s", delta)
		}
	})
}

// TestRetryBackoff shows that the delays between retries grow up to half a minute.
func TestRetryBackoff(t *testing.T) {
	backoff, got := configurations.RetryBackoff(), []time.Duration{}
	for range 8 {
		got = append(got, backoff.Step()/time.Second)
	}
	if delta := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 30, 30, 30}, got); delta != "" {
		t.Errorf("-want, +got, in seconds:\n%s", delta)
	}
}

func TestWriterFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validatingHook)
		defer p.stop(t)
		widgets := validatingHook
		widgets.Resources = []discovery.Resource{{Plural: "widgets"}}
		p.SetHooks([]configurations.Hook{widgets, persistentHook})
		synctest.Wait()
		entries := read(t, server.Object(validatingResource, "", "shared")).Webhooks
		if len(entries) != 2 || entries[0].Rules[0].Resources[0] != "widgets" {
			t.Errorf("a new resource must get its entry: got %+v", entries)
		}
		p.SetHooks([]configurations.Hook{validatingHook})
		p.SetClientConfig(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://there")})
		synctest.Wait()
		entries = read(t, server.Object(validatingResource, "", "shared")).Webhooks
		if len(entries) != 1 || len(entries[0].Rules) != 0 || *entries[0].ClientConfig.URL != "https://there/v" {
			t.Errorf("the entry must lose the removed resource and follow the server: got %+v", entries)
		}
	})
}

func TestWriterMakesNoEmptyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validatingHook)
		if got := names(t, server, mutatingResource); got != nil {
			t.Errorf("an object without entries must not be created: got %v", got)
		}
		p.SetHooks([]configurations.Hook{mutatingHook})
		synctest.Wait()
		if got := names(t, server, mutatingResource); len(got) != 1 {
			t.Errorf("the object must be created for its first entry: got %v", got)
		}
		requireEntries(t, "the entry of the former handler must be removed", server, []string{}...)
		p.stop(t)
	})
}

func TestWriterRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validatingHook)
		defer p.stop(t)
		first := func(object map[string]any) map[string]any { return object["webhooks"].([]any)[0].(map[string]any) }
		server.Edit(validatingResource, "", "shared", func(o map[string]any) { first(o)["failurePolicy"] = "Ignore" })
		synctest.Wait()
		if got := first(server.Object(validatingResource, "", "shared"))["failurePolicy"]; got != "Fail" {
			t.Errorf("an edited field must be restored: got %v", got)
		}
		server.Discard(validatingResource, "", "shared")
		synctest.Wait()
		requireEntries(t, "a deleted object must be restored", server, "v.ops.example.org")
		server.Edit(validatingResource, "", "shared", func(o map[string]any) {
			first(o)["clientConfig"].(map[string]any)["caBundle"] = "Q0E="
			o["webhooks"] = append(o["webhooks"].([]any), foreign())
		})
		edited := version(t, server)
		synctest.Wait()
		if now := version(t, server); now != edited {
			t.Errorf("the changes of other clients must stay: want version %s, got %s", edited, now)
		}
		p.SetHooks([]configurations.Hook{validatingHook, persistentHook})
		synctest.Wait()
		client := first(server.Object(validatingResource, "", "shared"))["clientConfig"]
		if got := client.(map[string]any)["caBundle"]; got != "Q0E=" {
			t.Errorf("the bundle of another client must stay: got %v", got)
		}
	})
}

func TestWriterFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		asKopf bool
		// fails returns the error of a request, given the number of earlier requests.
		requestError func(r memapi.Request, before int) error
		says         string
	}{
		"Forbidden": {"a forbidden patch is a permanent error", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "patch", http.StatusForbidden)
		}, "may not manage"},
		"ForbiddenToRead": {"a forbidden get is a permanent error", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "get", http.StatusForbidden)
		}, "may not manage"},
		"ForbiddenAsKopf": {"a forbidden create in Kopf's format is a permanent error",
			true, func(r memapi.Request, _ int) error {
				return refuse(r.Verb == "create", http.StatusForbidden)
			}, "may not manage"},
		"Broken": {"failed requests are retried", false, func(_ memapi.Request, before int) error {
			return refuse(before < 8, http.StatusInternalServerError)
		}, ""},
		"BrokenAsKopf": {"failed requests in Kopf's format are retried",
			true, func(_ memapi.Request, before int) error {
				return refuse(before < 8, http.StatusInternalServerError)
			}, ""},
		"WithoutUpdates": {"the right to update is not needed", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "update", http.StatusForbidden)
		}, ""},
		"Unwatched": {"the right to watch is not needed", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "watch", http.StatusForbidden)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				var count atomic.Int64
				o := options("a", 1)
				o.Form.AsKopf = tc.asKopf
				p := prepare(t, server, o)
				p.connection.Before = func(_ context.Context, r memapi.Request) error {
					return tc.requestError(r, int(count.Add(1))-1)
				}
				p.run(t, validatingHook)
				time.Sleep(time.Minute)
				if tc.says != "" {
					err := <-p.runResult
					if err == nil || !strings.Contains(err.Error(), tc.says) {
						t.Errorf("%s: got the error %v", tc.reason, err)
					}
					return
				}
				requireEntries(t, tc.reason, server, "v.ops.example.org")
				p.stop(t)
				requireEntries(t, tc.reason, server, []string{}...)
			})
		})
	}
}

// refuse returns an error of the API server if fails is true.
func refuse(fails bool, code int) error {
	if !fails {
		return nil
	}
	return memapi.NewRefusal(code)
}

func TestWriterMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, cluster(), options("a", 1), validatingHook, validatingHook)
		if err := <-p.runResult; err == nil || !strings.Contains(err.Error(), "another id") {
			t.Errorf("two entries of one name must be an error, as the API server refuses them: got %v", err)
		}
	})
}

func TestWriterConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, sharedConfiguration(nil))
		p := prepare(t, server, options("a", 1))
		var once sync.Once
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" {
				once.Do(func() {
					server.Edit(validatingResource, "", "shared", func(object map[string]any) {
						object["webhooks"] = []any{foreign()}
					})
				})
			}
			return nil
		}
		p.run(t, validatingHook)
		defer p.stop(t)
		requireEntries(t, "a change before the write must not be lost", server, "theirs.example.com",
			"v.ops.example.org")
	})
}

func TestWriterUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := prepare(t, server, options("a", 1))
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			return refuse(r.Verb == "watch", http.StatusForbidden)
		}
		p.run(t, validatingHook)
		defer p.stop(t)
		server.Discard(validatingResource, "", "shared")
		time.Sleep(10 * time.Minute)
		requireEntries(t, "changes must be found without a watch", server, "v.ops.example.org")
	})
}

func TestWriterAsKopf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, sharedConfiguration(map[string]any{"theirs": "x"}, foreign()))
		o := options("a", 1)
		o.Form.AsKopf = true
		p := start(t, server, o, validatingHook, persistentHook)
		requireEntries(t, "all entries must be replaced in Kopf's format", server, "v.ops.example.org",
			"p.ops.example.org")
		if got := names(t, server, mutatingResource); got == nil || len(got) != 0 {
			t.Errorf("the other object must exist without entries: got %v", got)
		}
		if got := read(t, server.Object(validatingResource, "", "shared")).Annotations; len(got) != 1 {
			t.Errorf("other fields must not change: got %v", got)
		}
		p.SetHooks([]configurations.Hook{persistentHook})
		synctest.Wait()
		requireEntries(t, "all entries must be replaced at each change", server, "p.ops.example.org")
		server.Discard(validatingResource, "", "shared")
		p.SetHooks([]configurations.Hook{persistentHook, validatingHook})
		time.Sleep(time.Minute)
		requireEntries(t, "a deleted object must be restored", server, "p.ops.example.org", "v.ops.example.org")
		p.stop(t)
		requireEntries(t, "the persistent entry must stay", server, "p.ops.example.org")
	})
}

// TestLogOfWrites shows that only writes that change the object are logged.
func TestLogOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := prepare(t, server, options("a", 1))
		var logged atomic.Int32
		log := funcr.New(func(_, line string) {
			if strings.Contains(line, "Wrote a webhook configuration") {
				logged.Add(1)
			}
		}, funcr.Options{})
		ctx, end := context.WithCancel(logf.IntoContext(t.Context(), log))
		go func() { p.runResult <- p.Run(ctx) }()
		p.SetHooks([]configurations.Hook{validatingHook})
		p.SetClientConfig(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://here")})
		synctest.Wait()
		if n := logged.Load(); n != 1 {
			t.Errorf("the first write must be logged once, got %d", n)
		}
		p.writes()
		server.Edit(validatingResource, "", "shared", func(object map[string]any) {
			object["metadata"].(map[string]any)["labels"] = map[string]any{"app": "ops"}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := logged.Load(); n != 1 || p.writes() == 0 {
			t.Errorf("an apply that changes nothing must not be logged, got %d lines", n)
		}
		end()
		if err := <-p.runResult; err != nil {
			t.Error(err)
		}
	})
}

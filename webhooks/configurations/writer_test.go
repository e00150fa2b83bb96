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

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

var (
	validate = configurations.Hook{ID: "v"}
	mutate   = configurations.Hook{ID: "m", Mutating: true}
	lasting  = configurations.Hook{ID: "p", Persistent: true}
)

// foreign is what another operator has in the object.
func foreign() map[string]any {
	return map[string]any{"name": "theirs.example.com", "clientConfig": map[string]any{"url": "https://there"}}
}

func shared(annotations map[string]any, entries ...any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "shared", "uid": "1", "annotations": annotations}, "webhooks": entries,
	}
}

func want(t *testing.T, reason string, server *memapi.Server, wanted ...string) {
	t.Helper()
	if delta := cmp.Diff(wanted, names(t, server, validatingResource)); delta != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, delta)
	}
}

func TestWriterKeepsToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, shared(map[string]any{"theirs": "x"}, foreign()))
		p := start(t, server, options("a", 1), validate, mutate, lasting)
		want(t, "entries are added", server, "theirs.example.com", "v.ops.example.org", "p.ops.example.org")
		if got := names(t, server, mutatingResource); !cmp.Equal(got, []string{"m.ops.example.org"}) {
			t.Errorf("the other object is made: got %v", got)
		}
		object := server.Object(validatingResource, "", "shared")
		if delta := cmp.Diff(any(foreign()), object["webhooks"].([]any)[0]); delta != "" {
			t.Errorf("the entries of others are not touched: -want, +got:\n%s", delta)
		}
		p.stop(t)
		want(t, "what is persistent stays", server, "theirs.example.com", "p.ops.example.org")
		p = start(t, server, options("b", 2), validate)
		want(t, "what is not wanted any more goes", server, "theirs.example.com", "v.ops.example.org")
		p.stop(t)
		want(t, "nothing is left", server, "theirs.example.com")
		got := read(t, server.Object(validatingResource, "", "shared")).Annotations
		if delta := cmp.Diff(map[string]string{"theirs": "x"}, got); delta != "" {
			t.Errorf("nor is an annotation: -want, +got:\n%s", delta)
		}
	})
}

func TestWriterFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validate)
		defer p.stop(t)
		widgets := validate
		widgets.Resources = []discovery.Resource{{Plural: "widgets"}}
		p.Serve([]configurations.Hook{widgets, lasting})
		synctest.Wait()
		entries := read(t, server.Object(validatingResource, "", "shared")).Webhooks
		if len(entries) != 2 || entries[0].Rules[0].Resources[0] != "widgets" {
			t.Errorf("a CRD has come: got %+v", entries)
		}
		p.Serve([]configurations.Hook{validate})
		p.Reach(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://there")})
		synctest.Wait()
		entries = read(t, server.Object(validatingResource, "", "shared")).Webhooks
		if len(entries) != 1 || len(entries[0].Rules) != 0 || *entries[0].ClientConfig.URL != "https://there/v" {
			t.Errorf("it has gone, and the server has moved: got %+v", entries)
		}
	})
}

func TestWriterMakesNoEmptyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validate)
		if got := names(t, server, mutatingResource); got != nil {
			t.Errorf("there are no mutating handlers: got %v", got)
		}
		p.Serve([]configurations.Hook{mutate})
		synctest.Wait()
		if got := names(t, server, mutatingResource); len(got) != 1 {
			t.Errorf("there is one: got %v", got)
		}
		want(t, "the other one has gone", server, []string{}...)
		p.stop(t)
	})
}

func TestWriterRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := start(t, server, options("a", 1), validate)
		defer p.stop(t)
		first := func(object map[string]any) map[string]any { return object["webhooks"].([]any)[0].(map[string]any) }
		server.Edit(validatingResource, "", "shared", func(o map[string]any) { first(o)["failurePolicy"] = "Ignore" })
		synctest.Wait()
		if got := first(server.Object(validatingResource, "", "shared"))["failurePolicy"]; got != "Fail" {
			t.Errorf("what somebody has changed by hand is restored: got %v", got)
		}
		server.Discard(validatingResource, "", "shared")
		synctest.Wait()
		want(t, "and what somebody has deleted", server, "v.ops.example.org")
		server.Edit(validatingResource, "", "shared", func(o map[string]any) {
			first(o)["clientConfig"].(map[string]any)["caBundle"] = "Q0E="
			o["webhooks"] = append(o["webhooks"].([]any), foreign())
		})
		edited := version(t, server)
		synctest.Wait()
		if now := version(t, server); now != edited {
			t.Errorf("the changes of others stay: want version %s, got %s", edited, now)
		}
		p.Serve([]configurations.Hook{validate, lasting})
		synctest.Wait()
		client := first(server.Object(validatingResource, "", "shared"))["clientConfig"]
		if got := client.(map[string]any)["caBundle"]; got != "Q0E=" {
			t.Errorf("the bundle of somebody else stays: got %v", got)
		}
	})
}

func TestWriterFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		asKopf bool
		// fails tells whether a request fails, given how many came before.
		fails func(r memapi.Request, before int) error
		says  string
	}{
		"Forbidden": {"no retry can help", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "patch", http.StatusForbidden)
		}, "may not manage"},
		"ForbiddenToRead": {"no retry can help", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "get", http.StatusForbidden)
		}, "may not manage"},
		"ForbiddenAsKopf": {"no retry can help", true, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "create", http.StatusForbidden)
		}, "may not manage"},
		"Broken": {"the next attempt works", false, func(_ memapi.Request, before int) error {
			return refuse(before < 8, http.StatusInternalServerError)
		}, ""},
		"BrokenAsKopf": {"the next attempt works", true, func(_ memapi.Request, before int) error {
			return refuse(before < 8, http.StatusInternalServerError)
		}, ""},
		"WithoutUpdates": {"roles need not allow them", false, func(r memapi.Request, _ int) error {
			return refuse(r.Verb == "update", http.StatusForbidden)
		}, ""},
		"Unwatched": {"it works all the same", false, func(r memapi.Request, _ int) error {
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
					return tc.fails(r, int(count.Add(1))-1)
				}
				p.run(t, validate)
				time.Sleep(time.Minute)
				if tc.says != "" {
					err := <-p.ended
					if err == nil || !strings.Contains(err.Error(), tc.says) {
						t.Errorf("%s: got the error %v", tc.reason, err)
					}
					return
				}
				want(t, tc.reason, server, "v.ops.example.org")
				p.stop(t)
				want(t, tc.reason, server, []string{}...)
			})
		})
	}
}

// refuse is an error of the API server if there is one.
func refuse(fails bool, code int) error {
	if !fails {
		return nil
	}
	return memapi.Refusal(code)
}

func TestWriterMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, cluster(), options("a", 1), validate, validate)
		if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "another id") {
			t.Errorf("two entries of one name are refused by any API server: got the error %v", err)
		}
	})
}

func TestWriterConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, shared(nil))
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
		p.run(t, validate)
		defer p.stop(t)
		want(t, "what came in between is not lost", server, "theirs.example.com", "v.ops.example.org")
	})
}

func TestWriterUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		p := prepare(t, server, options("a", 1))
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			return refuse(r.Verb == "watch", http.StatusForbidden)
		}
		p.run(t, validate)
		defer p.stop(t)
		server.Discard(validatingResource, "", "shared")
		time.Sleep(10 * time.Minute)
		want(t, "changes are found in the end", server, "v.ops.example.org")
	})
}

func TestWriterAsKopf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		server.Put(validatingResource, shared(map[string]any{"theirs": "x"}, foreign()))
		o := options("a", 1)
		o.Form.AsKopf = true
		p := start(t, server, o, validate, lasting)
		want(t, "all entries are replaced", server, "v.ops.example.org", "p.ops.example.org")
		if got := names(t, server, mutatingResource); got == nil || len(got) != 0 {
			t.Errorf("the other object is there, with no entries: got %v", got)
		}
		if got := read(t, server.Object(validatingResource, "", "shared")).Annotations; len(got) != 1 {
			t.Errorf("nothing else is changed: got %v", got)
		}
		p.Serve([]configurations.Hook{lasting})
		synctest.Wait()
		want(t, "at every change", server, "p.ops.example.org")
		server.Discard(validatingResource, "", "shared")
		p.Serve([]configurations.Hook{lasting, validate})
		time.Sleep(time.Minute)
		want(t, "also when somebody has deleted it", server, "p.ops.example.org", "v.ops.example.org")
		p.stop(t)
		want(t, "what is persistent stays", server, "p.ops.example.org")
	})
}

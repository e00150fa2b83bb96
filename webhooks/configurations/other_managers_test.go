package configurations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// otherClient is a client that is not a process of this release: an operator that shares the object, an injector of CA
// bundles, or a process of a former release.
type otherClient struct {
	client.WithWatch
	fieldManager string
}

func connectOther(t *testing.T, server *memapi.Server, manager string) otherClient {
	t.Helper()
	made, err := configurations.NewClient(memapi.Config(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	return otherClient{made, manager}
}

func validatingObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion("admissionregistration.k8s.io/v1")
	object.SetKind(validatingResource.Kind)
	object.SetName("shared")
	return object
}

// apply applies entries to the validating object.
func (o otherClient) apply(t *testing.T, entries ...any) {
	t.Helper()
	object := validatingObject()
	object.Object["webhooks"] = entries
	err := o.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(o.fieldManager),
		client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
}

// update changes the validating object, or creates it.
func (o otherClient) update(t *testing.T, change func(object map[string]any)) {
	t.Helper()
	object := validatingObject()
	err := o.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	write := func() error { return o.Update(t.Context(), object, client.FieldOwner(o.fieldManager)) }
	if apierrors.IsNotFound(err) {
		err = nil
		write = func() error { return o.Create(t.Context(), object, client.FieldOwner(o.fieldManager)) }
	}
	change(object.Object)
	if err == nil {
		err = write()
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// inject sets the CA bundle of all entries.
func (o otherClient) inject(t *testing.T, bundle string) {
	t.Helper()
	o.update(t, func(object map[string]any) {
		for _, entry := range object["webhooks"].([]any) {
			entry.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = bundle
		}
	})
}

// entry returns an entry at a URL, with more fields.
func entry(name, url string, more map[string]any) map[string]any {
	fields := map[string]any{
		"name": name, "clientConfig": map[string]any{"url": url}, "sideEffects": "None",
		"admissionReviewVersions": []any{"v1"}, "matchPolicy": "Exact",
	}
	for key, value := range more {
		fields[key] = value
	}
	return fields
}

// writeAsFormer replaces the entries as releases before server-side apply do: by an update of the object as a whole.
func writeAsFormer(t *testing.T, server *memapi.Server, mark string, entries ...any) {
	t.Helper()
	connectOther(t, server, "ops.example.org").update(t, func(object map[string]any) {
		metadata := object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations["ops.example.org/webhooks"] = mark
		if metadata["annotations"] = annotations; mark == "" {
			delete(annotations, "ops.example.org/webhooks")
		}
		all, _ := object["webhooks"].([]any)
		all = slices.DeleteFunc(slices.Clone(all), func(one any) bool {
			return strings.HasSuffix(one.(map[string]any)["name"].(string), ".ops.example.org")
		})
		object["webhooks"] = append(all, entries...)
	})
}

// markOf returns the mark of a process with entries.
func markOf(t *testing.T, writer string, second int64, entries ...string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"writer": writer, "started": time.Unix(second, 0), "entries": entries})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ownManagers returns the operations of the operator in the managedFields.
func ownManagers(t *testing.T, server *memapi.Server, of memapi.Resource) (all []string) {
	t.Helper()
	for _, one := range read(t, server.Object(of, "", "shared")).ManagedFields {
		if one.Manager == "ops.example.org" {
			all = append(all, string(one.Operation))
		}
	}
	return all
}

// stored returns an entry of the validating object.
func stored(t *testing.T, server *memapi.Server, name string) (found admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	for _, one := range read(t, server.Object(validatingResource, "", "shared")).Webhooks {
		if one.Name == name {
			found = one
		}
	}
	return found
}

// TestKilledProcesses shows that a process can be killed at any request: the next process finds and removes its
// entries.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		const kills = 50
		server := cluster()
		connectOther(t, server, "theirs").apply(t, entry("theirs.example.com", "https://there", nil))
		connectOther(t, server, "injector").inject(t, "Q0E=")
		theirs := stored(t, server, "theirs.example.com")
		missing := countGaps(server, "v.ops.example.org")
		recordAll(t, records(t, server, false, false), "a")
		for i := range kills {
			p, count := prepare(t, server, options(fmt.Sprint("killed-", i), int64(i))), atomic.Int64{}
			kill := func(context.Context, memapi.Request) error {
				if count.Add(1) == int64(i/2%12+1) {
					p.connection.Cut()
				}
				return nil
			}
			if p.connection.Before = kill; i%2 == 1 {
				p.connection.Before, p.connection.After = nil, kill
			}
			hooks := []configurations.Hook{validatingHook, mutatingHook, persistentHook, {ID: fmt.Sprint("only-", i)}}
			p.run(t, hooks[:2+i%3]...)
			p.connection.Cut()
			p.stop(t)
		}
		before := start(t, server, options("before", kills), validatingHook, mutatingHook, persistentHook)
		connectOther(t, server, "injector").inject(t, "Q0E=")
		after := start(t, server, options("after", kills+1), validatingHook, mutatingHook)
		before.stop(t)
		requireEntries(t, "one entry for each handler", server, "theirs.example.com", "v.ops.example.org")
		if got := names(t, server, mutatingResource); !cmp.Equal(got, []string{"m.ops.example.org"}) {
			t.Errorf("want one entry for each handler, got %v", got)
		}
		for _, resource := range []memapi.Resource{validatingResource, mutatingResource} {
			if all := ownManagers(t, server, resource); len(all) > 2 {
				t.Errorf("%s: the operator must be a field manager by apply, and by update for its records: got %v",
					resource.Kind, all)
			}
		}
		if delta := cmp.Diff(theirs, stored(t, server, "theirs.example.com")); delta != "" {
			t.Errorf("the entries of others must stay unchanged: -want, +got:\n%s", delta)
		}
		if got := stored(t, server, "v.ops.example.org").ClientConfig.CABundle; string(got) != "CA" {
			t.Errorf("the bundle of an injector must stay: got %q", got)
		}
		if *missing > 0 {
			t.Errorf("the entry was missing %d times", *missing)
		}
		after.stop(t)
		requireEntries(t, "the last process must remove the entries", server, "theirs.example.com")
		wantRecords(t, records(t, server, false, false), "a")
	})
}

// TestUpgradeAndRollback shows that entries of releases before server-side apply, which updated the whole object, are
// taken over, and that such a release can take them back.
func TestUpgradeAndRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		connectOther(t, server, "theirs").apply(t, entry("theirs.example.com", "https://there", nil))
		former := entry("v.ops.example.org", "https://former/v", map[string]any{"matchConditions": []any{
			map[string]any{"name": "former", "expression": "true"},
		}})
		stale := entry("stale.ops.example.org", "https://former/stale", nil)
		recordAll(t, records(t, server, false, false), "a")
		for second := int64(1); second < 6; second += 2 {
			both := markOf(t, "former", second, "v.ops.example.org", "stale.ops.example.org")
			writeAsFormer(t, server, both, former, stale)
			connectOther(t, server, "injector").inject(t, "Q0E=")
			upgraded := start(t, server, options("upgraded", second+1), validatingHook)
			requireEntries(t, "the upgrade must remove the stale entry", server, "theirs.example.com",
				"v.ops.example.org")
			got := stored(t, server, "v.ops.example.org")
			if len(got.MatchConditions) > 0 || *got.ClientConfig.URL != "https://here/v" {
				t.Errorf("the upgrade must remove former fields of an entry: got %+v", got)
			}
			if string(got.ClientConfig.CABundle) != "CA" {
				t.Errorf("the bundle of an injector must stay: got %q", got.ClientConfig.CABundle)
			}
			if all := ownManagers(t, server, validatingResource); len(all) > 2 {
				t.Errorf("the operator must be a field manager by apply, and by update for its records: got %v", all)
			}
			// The process of a rollback has a later start.
			writeAsFormer(t, server, markOf(t, "back", second+2, "v.ops.example.org"), former)
			upgraded.stop(t)
			requireEntries(t, "the former release must keep its entries after a rollback",
				server, "theirs.example.com", "v.ops.example.org")
			if got := stored(t, server, "v.ops.example.org"); *got.ClientConfig.URL != "https://former/v" {
				t.Errorf("the entries of the former release must be unchanged: got %+v", got)
			}
			writeAsFormer(t, server, "")
			requireEntries(t, "the former release must be able to remove its entries", server, "theirs.example.com")
		}
		wantRecords(t, records(t, server, false, false), "a")
	})
}

// TestClaims shows that other clients cannot change the operator's entries, except for their CA bundles.
func TestClaims(t *testing.T) {
	selector := map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}
	printed := entry("v.ops.example.org", "https://before/v", selector)
	nothing := func(*testing.T, *memapi.Server) {}
	for name, tc := range map[string]struct {
		reason         string
		before, during func(t *testing.T, server *memapi.Server)
		bundle         string
	}{
		"Applied": {"an applied printed configuration is replaced", func(t *testing.T, server *memapi.Server) {
			connectOther(t, server, "kubectl").apply(t, printed)
		}, nothing, ""},
		"Edited": {"an edited entry is restored", nothing, func(t *testing.T, server *memapi.Server) {
			connectOther(t, server, "kubectl-edit").update(t, func(object map[string]any) {
				object["webhooks"].([]any)[1] = printed
			})
		}, ""},
		"Injected": {"the CA bundle of an injector stays", nothing, func(t *testing.T, server *memapi.Server) {
			connectOther(t, server, "injector").inject(t, "Q0E=")
		}, "CA"},
		"InjectedByApply": {"the CA bundle of an injector that applies it stays",
			nothing, func(t *testing.T, server *memapi.Server) {
				connectOther(t, server, "injector").apply(t, map[string]any{
					"name": "v.ops.example.org", "clientConfig": map[string]any{"caBundle": "Q0E="},
				})
			}, "CA"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				connectOther(t, server, "theirs").apply(t, entry("theirs.example.com", "https://there", nil))
				tc.before(t, server)
				p := start(t, server, options("a", 1), validatingHook)
				tc.during(t, server)
				synctest.Wait()
				got := stored(t, server, "v.ops.example.org")
				if got.ObjectSelector != nil || ptr.Deref(got.ClientConfig.URL, "") != "https://here/v" {
					t.Errorf("%s: want the fields of the operator alone, got %+v", tc.reason, got)
				}
				if bundle := string(got.ClientConfig.CABundle); bundle != tc.bundle {
					t.Errorf("%s: got the bundle %q", tc.reason, bundle)
				}
				p.writes()
				time.Sleep(time.Hour)
				if n := p.writes(); n > 0 {
					t.Errorf("%s: the operator and the other client keep writing in turn: %d writes", tc.reason, n)
				}
				p.stop(t)
				requireEntries(t, "the operator must remove its entry at the end", server, "theirs.example.com")
			})
		})
	}
}

// TestOrderOfEntries shows that the entries keep the order of the handlers, in which the API server calls mutating
// handlers.
func TestOrderOfEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		hooks := func(ids ...string) (all []configurations.Hook) {
			for _, id := range ids {
				all = append(all, configurations.Hook{ID: id})
			}
			return all
		}
		p := start(t, server, options("a", 1), hooks("a", "b", "c")...)
		connectOther(t, server, "theirs").update(t, func(object map[string]any) {
			theirs := any(entry("theirs.example.com", "https://there", nil))
			object["webhooks"] = slices.Insert(object["webhooks"].([]any), 1, theirs)
		})
		for _, ids := range [][]string{{"c", "b", "a"}, {"d", "a", "e", "c"}, {"c", "a"}} {
			p.SetHooks(hooks(ids...))
			synctest.Wait()
			got := slices.DeleteFunc(names(t, server, validatingResource), func(name string) bool {
				return name == "theirs.example.com"
			})
			var wanted []string
			for _, id := range ids {
				wanted = append(wanted, id+".ops.example.org")
			}
			if delta := cmp.Diff(wanted, got); delta != "" {
				t.Errorf("-want, +got:\n%s", delta)
			}
		}
		p.stop(t)
	})
}

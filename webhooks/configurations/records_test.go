package configurations_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

func records(t *testing.T, transport http.RoundTripper, mutating, asKopf bool) *configurations.Records {
	t.Helper()
	client, err := configurations.NewClient(memapi.Config(transport), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := options("a", 1)
	o.Client, o.Form.AsKopf = client, asKopf
	return configurations.NewRecords(o, mutating)
}

func recordAll(t *testing.T, r *configurations.Records, fingerprints ...string) {
	t.Helper()
	if err := r.Record(t.Context(), fingerprints); err != nil {
		t.Fatal(err)
	}
}

func wantRecords(t *testing.T, r *configurations.Records, want ...string) (published string) {
	t.Helper()
	got, bundle, err := r.Read(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("want the fingerprints %q, got %q and the error %v", want, got, err)
	}
	return string(bundle)
}

func TestRecords(t *testing.T) {
	server := cluster()
	connection := server.Connect()
	connection.Before = func(_ context.Context, r memapi.Request) error {
		return refuse(r.Verb == "update", http.StatusForbidden) // a role need not allow it
	}
	r := records(t, connection, false, false)
	wantRecords(t, r)
	recordAll(t, r, "a")
	recordAll(t, r, "b", "a")
	wantRecords(t, r, "b", "a")
	recordAll(t, records(t, server, true, false), "c")
	wantRecords(t, r, "b", "a", "c")
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprint(i))
	}
	recordAll(t, r, many...)
	wantRecords(t, r, append(many, "b", "c")...)
}

// TestRecordsAndEntries shows that the records stay when the operator exits, and are removed by an operator without
// admission handlers.
func TestRecordsAndEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		r := records(t, server, false, false)
		recordAll(t, r, "a")
		p := start(t, server, options("a", 1), validatingHook)
		requireEntries(t, "entries must be added to the object with the records", server, "v.ops.example.org")
		p.stop(t)
		wantRecords(t, r, "a")
		last := start(t, server, options("b", 2))
		last.stop(t)
		wantRecords(t, r)
		if annotations := read(t, server.Object(validatingResource, "", "shared")).Annotations; len(annotations) > 0 {
			t.Errorf("an operator without handlers must remove the annotation: got %v", annotations)
		}
	})
}

// TestPublishedBundles shows that only the bundles of the operator's own entries count as published, unless all
// entries are its own, as in Kopf.
func TestPublishedBundles(t *testing.T) {
	for asKopf, want := range map[bool]string{false: "ours", true: "ours" + "theirs"} {
		synctest.Test(t, func(t *testing.T) {
			server := cluster()
			server.Put(validatingResource, sharedConfiguration(nil, map[string]any{
				"name": "theirs.example.com", "clientConfig": map[string]any{"caBundle": "dGhlaXJz"},
			}))
			p := prepare(t, server, options("a", 1))
			p.run(t, validatingHook)
			p.SetClientConfig(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://here"),
				CABundle: []byte("ours")})
			synctest.Wait()
			published := wantRecords(t, records(t, server, false, asKopf))
			if len(published) != len(want) || !strings.Contains(published, "ours") {
				t.Errorf("as Kopf %v: want the bundles %q, got %q", asKopf, want, published)
			}
			p.stop(t)
		})
	}
}

func TestRecordsForbidden(t *testing.T) {
	connection := cluster().Connect()
	connection.Before = func(context.Context, memapi.Request) error { return memapi.NewRefusal(http.StatusForbidden) }
	r := records(t, connection, false, false)
	_, _, err := r.Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "grant it get, create, patch and watch") {
		t.Errorf("the error must name the permissions: got %v", err)
	}
}

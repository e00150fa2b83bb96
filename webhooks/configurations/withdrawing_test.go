package configurations_test

import (
	"testing"
	"testing/synctest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// findEntries returns the objects with entries of the operator.
func findEntries(t *testing.T, server *memapi.Server, asKopf bool) []configurations.StoredEntries {
	t.Helper()
	client, err := configurations.NewClient(memapi.Config(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := options("", 0)
	o.Client, o.Form.AsKopf = client, asKopf
	found, err := configurations.FindEntries(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// withdrawAll withdraws the entries from all of these objects.
func withdrawAll(t *testing.T, all []configurations.StoredEntries) {
	t.Helper()
	for _, one := range all {
		if err := one.Withdraw(t.Context()); err != nil {
			t.Errorf("%s: %v", one, err)
		}
	}
}

// TestWithdraw shows that the entries of a killed process are removed together with its marks and records. An object
// that only the operator has written is deleted; one with entries of another operator keeps those.
func TestWithdraw(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		asKopf   bool
		neighbor bool
		want     []string
	}{
		"alone": {reason: "an object of the operator alone is deleted", want: nil},
		"neighbor": {reason: "the entries of another operator stay", neighbor: true,
			want: []string{"v.other.example.org"}},
		"AsKopf": {reason: "with AsKopf, all entries are those of the operator", asKopf: true, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := cluster()
				if found := findEntries(t, server, c.asKopf); len(found) > 0 {
					t.Errorf("an operator that has written nothing has no entries: got %v", found)
				}
				recordAll(t, records(t, server, false, false), "a")
				if c.asKopf {
					server.Discard(validatingResource, "", "shared") // Kopf has no records
				}
				o := options("a", 1)
				o.Form.AsKopf = c.asKopf
				p := start(t, server, o, validatingHook)
				p.connection.Cut()
				if c.neighbor {
					o := options("b", 2)
					o.Operator, o.Form.Suffix = "other.example.org", "other.example.org"
					other := start(t, server, o, validatingHook)
					defer other.connection.Cut()
				}
				found := findEntries(t, server, c.asKopf)
				if len(found) != 1 || found[0].String() != "ValidatingWebhookConfiguration shared" {
					t.Fatalf("the validating object has entries: got %v", found)
				}
				withdrawAll(t, found)
				requireEntries(t, c.reason, server, c.want...)
				if found := findEntries(t, server, c.asKopf); len(found) > 0 {
					t.Errorf("no entries are left: got %v", found)
				}
				if object := server.Object(validatingResource, "", "shared"); (object != nil) != c.neighbor {
					t.Errorf("%s: got %v", c.reason, object)
				}
			})
		})
	}
}

// TestWithdrawKeepsObjectsOfOthers shows that an empty object stays if another client has created it.
func TestWithdrawKeepsObjectsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster()
		other := connectOther(t, server, "kubectl")
		object := validatingObject()
		object.SetLabels(map[string]string{"app": "ops"})
		if err := other.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		p := start(t, server, options("a", 1), validatingHook)
		p.connection.Cut()
		withdrawAll(t, findEntries(t, server, false))
		requireEntries(t, "the entries are removed", server, []string{}...)
		if server.Object(validatingResource, "", "shared") == nil {
			t.Error("an object that another client has created stays")
		}
	})
}

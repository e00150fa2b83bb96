package keys_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

func TestIsReserved(t *testing.T) {
	for name, want := range map[string]bool{
		keys.LastHandled: true, keys.HandledUID: true, "handled-uid-ofSecret": true,
		"handling-configuration-ofDRS": true,
		"children-of.fn":               true, "children-of-run.fn": true,
		keys.ManagedMarker: true, keys.DeclaredIn: true,
		"create_fn": false, "last-handled-configurations": false, "children": false, "": false,
	} {
		if got := keys.IsReserved(name); got != want {
			t.Errorf("%q is reserved: want %t, got %t", name, want, got)
		}
	}
}

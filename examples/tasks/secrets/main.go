// Command secrets handles objects with a password. The password is neither in its log nor in its annotations.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one login.
type Change = kopf.Change[*kopf.Unstructured]

func main() {
	key, err := os.ReadFile("/keys/digest-key") // a mounted Secret
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the key of digests:", err)
		os.Exit(1)
	}
	op := newOperator(key)
	kopf.Main(op)
}

func newOperator(key []byte) *kopf.Operator {
	op := kopf.New("logins.example.org", kopf.Settings{Persistence: kopf.PersistenceSettings{DigestKey: key}})
	logins := kopf.ForResource(op, "example.org", "logins").Redacted("spec.password")
	logins.On("store", kopf.CreateUpdateResume(), store, kopf.Backoff(10*time.Second))
	return op
}

func store(ctx context.Context, c *Change) error {
	password, err := kopf.GetField[string](c.Object, "spec.password")
	if err != nil {
		return kopf.Permanent(err) // names the path, not the value
	}
	if err := sendToVault(password); err != nil {
		// The error of the vault may quote the password, so its text is not a part of this one.
		return errors.New("the vault refused the password")
	}
	var changed []string
	for _, item := range c.Diff {
		changed = append(changed, item.Path.String())
	}
	log.FromContext(ctx).Info("Stored the password", "changed", changed)
	return nil
}

// sendToVault stands for a call of another system.
func sendToVault(password string) error {
	if len(password) < 8 {
		return fmt.Errorf("the password %q is too short", password)
	}
	return nil
}

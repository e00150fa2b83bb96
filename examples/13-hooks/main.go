// Command 13-hooks opens a resource before its handlers run, and closes it after they have ended.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

// operator has the journal that the startup opens. The handlers are its methods.
type operator struct {
	journal *os.File
}

func main() {
	op := kopf.New("hooks.kopf.dev")
	register(op, &operator{})
	kopf.Main(op)
}

func register(op *kopf.Operator, o *operator) {
	op.OnStartup("configure", configure)
	op.OnStartup("open", o.open, kopf.Retries(5), kopf.Timeout(time.Minute))
	op.OnCleanup("close", o.close)
	kopf.ForResource(op, "kopfexamples.kopf.dev").On("note", kopf.CreateUpdateResume(), o.note)
}

// configure changes settings. They take effect because the operator has not started yet.
func configure(ctx context.Context, s *kopf.Activity) error {
	s.Settings.Execution.DefaultBackoff = 5 * time.Second
	s.Settings.CleanupTimeout = 10 * time.Second
	log.FromContext(ctx).Info("Configured", "namespaces", s.Settings.Namespaces)
	return nil
}

// open waits until the journal is ready. Until then, the operator does not send requests to the API server.
func (o *operator) open(ctx context.Context, s *kopf.Activity) (err error) {
	if s.Retry < 2 {
		return kopf.Temporary(fmt.Errorf("the journal is not ready"), 100*time.Millisecond)
	}
	o.journal, err = os.CreateTemp("", "13-hooks-*.journal")
	if err != nil {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("Opened the journal", "attempts", s.Retry+1, "name", filepath.Base(o.journal.Name()))
	return nil
}

// note does not need a global variable: the journal is open before the first call.
func (o *operator) note(ctx context.Context, c *Change) error {
	if _, err := o.journal.WriteString(c.Object.GetName() + "\n"); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Noted")
	return nil
}

// close is called when all handlers that use the journal have ended.
func (o *operator) close(ctx context.Context, _ *kopf.Activity) error {
	notes, err := os.ReadFile(o.journal.Name())
	if err := errors.Join(err, o.journal.Close(), os.Remove(o.journal.Name())); err != nil {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("Closed the journal", "bytes", len(notes))
	return nil
}

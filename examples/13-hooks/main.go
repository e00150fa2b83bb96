// Command 13-hooks makes what its handlers need before all else, and gives it back when all else has ended.
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

// operator is what the startup makes, for the handlers: they are its methods.
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

// configure changes settings: they count, as nothing of the operator exists yet.
func configure(ctx context.Context, s *kopf.Activity) error {
	s.Settings.Execution.DefaultBackoff = 5 * time.Second
	s.Settings.CleanupTimeout = 10 * time.Second
	log.FromContext(ctx).Info("Configured", "namespaces", s.Settings.Namespaces)
	return nil
}

// open waits for something that is not there at once. Until it is, nothing is asked of the API server.
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

// note needs neither a global variable nor a lookup: when it is called, the journal is there.
func (o *operator) note(ctx context.Context, c *Change) error {
	if _, err := o.journal.WriteString(c.Object.GetName() + "\n"); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Noted")
	return nil
}

// close is called when no handler uses the journal any more.
func (o *operator) close(ctx context.Context, _ *kopf.Activity) error {
	notes, err := os.ReadFile(o.journal.Name())
	if err := errors.Join(err, o.journal.Close(), os.Remove(o.journal.Name())); err != nil {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("Closed the journal", "bytes", len(notes))
	return nil
}

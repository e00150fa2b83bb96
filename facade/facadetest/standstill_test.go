package facadetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// standstillVariable is set in the process that TestStandstill starts.
const standstillVariable = "FACADETEST_STANDSTILL"

// ledger is a fake that holds its mutex for too long.
type ledger struct{ mu sync.Mutex }

func (l *ledger) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	time.Sleep(time.Minute)
}

// TestStandstill runs a test that can never end in a separate process. The process must report the reason and end.
func TestStandstill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	if os.Getenv(standstillVariable) != "" {
		synctest.Test(t, func(t *testing.T) { standStill(t) })
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStandstill$")
	process.Env = append(os.Environ(), standstillVariable+"=yes")
	output, err := process.CombinedOutput()
	rest := string(output)
	for _, want := range []string{
		"panic: facadetest: TestStandstill: the bubble stands still", "Waiting for a mutex:", "(*ledger).write",
		"One of these holds a mutex, and waits:", "(*ledger).write",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("the process has ended with %v and without %q:\n%s", err, want, output)
		}
		rest = after
	}
}

func standStill(t *testing.T) {
	server, shared := memapi.New(), &ledger{}
	op := kopf.New("ledger.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnCreate("write", func(context.Context, *kopf.Change[*corev1.ConfigMap]) error {
		shared.write()
		return nil
	})
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
	r.Ready()
	createConfigMap(t, server, "one")
	createConfigMap(t, server, "two")
	time.Sleep(time.Hour)
}

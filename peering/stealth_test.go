package peering_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// logBuffer is a log in memory.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

// TestStealth shows that in stealth mode, the record is kept alive without log lines.
func TestStealth(t *testing.T) {
	t.Parallel()
	for _, stealth := range []bool{false, true} {
		t.Run(fmt.Sprint(stealth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &logBuffer{}
				handler := slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})
				ctx, cancel := context.WithCancel(logf.IntoContext(t.Context(), logr.FromSlogHandler(handler)))
				b := newMemberFixtureBefore(ctx, t, 0, vectors.Fields{}, peering.Member{
					Self: peering.Self{Identity: "me"}, Stealth: stealth,
				})
				done := make(chan struct{})
				go func() { defer close(done); b.member.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				cancel()
				<-done
				if len(b.connection.DrainRequests()) < 10 {
					t.Error("the record is not kept alive")
				}
				if logs := strings.Contains(log.text.String(), "alive"); logs == stealth {
					t.Errorf("the log reports the renewals: %t", logs)
				}
			})
		})
	}
}

//go:build unix && !aix && !solaris

package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// lockPoll is how often a waiting process tries again. The kernel offers waiting, but not with a context.
const lockPoll = 100 * time.Millisecond

// lock takes an exclusive lock on a file, which it creates. The kernel gives it back when the process dies.
func lock(ctx context.Context, path string, report *progress.Reporter) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, f, report); err != nil {
		f.Close()
		return nil, err
	}
	// The holder's number is for people who wonder whom they are waiting for.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return func() { f.Close() }, nil // the file stays: removing it would let two processes lock two files
}

func await(ctx context.Context, f *os.File, report *progress.Reporter) error {
	var done func()
	defer func() {
		if done != nil {
			done()
		}
	}()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if done == nil {
			done = report.Waiting("waiting for another process that fills the cache", holder(f.Name()))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func holder(path string) string {
	if data, err := os.ReadFile(path); err == nil && len(data) > 1 {
		return "process " + strings.TrimSpace(string(data))
	}
	return ""
}

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
)

// readyPoll is the interval between readiness checks of a starting server.
const readyPoll = 100 * time.Millisecond

// server is one program of the control plane.
type server struct {
	name       string
	log        string
	process    *process.Process
	isStopping atomic.Bool // its end is wanted
}

// launch starts a server whose output goes to a log file.
func (c *ControlPlane) launch(name string, args []string) (*server, error) {
	logs := c.options.LogDir
	if logs == "" {
		logs = c.dir
	}
	s := &server{name: name, log: filepath.Join(logs, name+".log")}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(c.assets.Path(name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	// The environment is minimal, because etcd reads settings from it that are not meant for this server.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir}
	if s.process, err = process.Start(cmd); err != nil {
		return nil, err
	}
	c.servers = append(c.servers, s)
	return s, c.watchdog.Guard(s.process)
}

// await asks a server until it says that it is ready.
func (c *ControlPlane) await(ctx context.Context, s *server, ready func(context.Context) error) error {
	defer c.report.Waiting("waiting for "+s.name+" to become ready", "")()
	timeout := c.options.startTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready in %s", timeout))
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	var last error
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // an interrupted check does not show the state of the server
			last = err
		}
		select {
		case <-tick.C:
		case <-s.process.Done():
			return s.unexpected()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; its last answer: %w%s", s.name, context.Cause(ctx), last, s.logEnd())
		}
	}
}

// unexpected describes the end of a server that ought to run.
func (s *server) unexpected() error {
	err := s.process.Err()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended by itself (%w)%s", s.name, err, s.logEnd())
}

// logEnd quotes the end of the log, where a server says why it gave up.
func (s *server) logEnd() string {
	const lines = 10
	data, err := os.ReadFile(s.log)
	if err != nil || len(data) == 0 {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return "; its log ends:\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}

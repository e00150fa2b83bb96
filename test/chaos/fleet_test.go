package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// member is one place in the fleet: its process may be another one from time to time.
type member struct {
	fleet         *fleet
	settings      operator
	isGenuineKopf bool // it is a genuine one
	proxy         *proxy
	kubeconfig    string

	mu          sync.Mutex
	process     *exec.Cmd
	done        chan struct{}
	isDisturbed bool
	startCount  int
}

// fleet is all operators of a play.
type fleet struct {
	t                *testing.T
	ledger           *ledger
	host, kubeconfig string // of the API server
	spared           int    // how many operators are left alone at any time
	members          []*member
	runningSteps     sync.WaitGroup // that are not over
}

// join starts an operator, which steps may be for.
func (f *fleet) join(about operator, kopf bool) {
	f.t.Helper()
	m := f.add(about, kopf)
	f.members = append(f.members, m)
	m.start()
}

// add prepares an operator, with a proxy of its own.
func (f *fleet) add(about operator, kopf bool) *member {
	f.t.Helper()
	host := strings.Trim(strings.TrimPrefix(f.host, "https:"), "/")
	p, err := newProxy(host)
	if err != nil {
		f.t.Fatal(err)
	}
	m := &member{
		fleet: f, settings: about, isGenuineKopf: kopf, proxy: p,
		kubeconfig: filepath.Join(f.t.TempDir(), "kubeconfig"),
	}
	content := strings.ReplaceAll(f.kubeconfig, host, p.address())
	if content == f.kubeconfig {
		f.t.Fatalf("%s is not in the kubeconfig", host)
	}
	if err := os.WriteFile(m.kubeconfig, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		m.terminate(syscall.SIGKILL)
		p.close()
	})
	return m
}

// start begins another life, with another identity.
func (m *member) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.startCount++
	about := operator{
		Identity: fmt.Sprintf("%s.%d", m.settings.Identity, m.startCount), Priority: m.settings.Priority,
		Lifetime: m.settings.Lifetime, ClockOffset: m.settings.ClockOffset, Collector: m.fleet.ledger.server.URL,
		AsKopf: m.settings.AsKopf, Shards: m.settings.Shards,
	}
	m.process = m.command(about)
	m.process.Env = append(m.process.Env, "KUBECONFIG="+m.kubeconfig, "POD_ID="+about.Identity)
	m.process.Stderr = &peerLog{ledger: m.fleet.ledger, identity: about.Identity}
	m.process.Stdout = m.process.Stderr
	if err := m.process.Start(); err != nil {
		m.fleet.t.Error(err)
		return
	}
	m.done = make(chan struct{})
	m.recordEvent(about.Identity, "started", fmt.Sprintf("priority %d, clock %s", about.Priority, about.ClockOffset))
	go func(process *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = process.Wait()
	}(m.process, m.done)
}

// command is the process of an operator: this program, or Kopf.
func (m *member) command(about operator) *exec.Cmd {
	if m.isGenuineKopf {
		return kopfCommand(about)
	}
	text, err := json.Marshal(about)
	if err != nil {
		m.fleet.t.Error(err)
	}
	process := exec.Command(os.Args[0]) //nolint:gosec,noctx // this program, until it is ended
	process.Env = append(os.Environ(), operatorVariable+"="+string(text))
	return process
}

func (m *member) recordEvent(identity, kind, text string) {
	m.fleet.ledger.add(report{Kind: kind, By: identity, Text: text})
}

// identity is that of the present life.
func (m *member) identity() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%s.%d", m.settings.Identity, m.startCount)
}

func (m *member) signal(s syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.process.Process.Signal(s)
}

// terminate has the process end by a signal, and waits for that.
func (m *member) terminate(by syscall.Signal) {
	m.signal(by)
	select {
	case <-m.done:
	case <-time.After(waitTimeout):
		m.fleet.t.Errorf("%s does not end", m.identity())
		m.signal(syscall.SIGKILL)
	}
}

// play has the steps happen, and returns when all are over.
func (f *fleet) play(ctx context.Context, steps []step) {
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.delay):
		}
		if m := f.target(s.target); m != nil {
			f.runningSteps.Go(func() { m.executeStep(s) })
		}
	}
	f.runningSteps.Wait()
}

// target is who a step is for. Some operators are left alone at any time.
func (f *fleet) target(index int) *member {
	free, acting := []*member(nil), f.ledger.actingOperator()
	for _, m := range f.members {
		m.mu.Lock()
		if !m.isDisturbed {
			free = append(free, m)
		}
		m.mu.Unlock()
	}
	if len(free) <= f.spared {
		return nil
	}
	chosen := free[max(0, index)%len(free)]
	for _, m := range free {
		if index < 0 && m.identity() == acting {
			chosen = m
		}
	}
	chosen.mu.Lock()
	defer chosen.mu.Unlock()
	chosen.isDisturbed = true
	return chosen
}

// executeStep is one step, from its beginning to its end.
func (m *member) executeStep(s step) {
	who := m.identity()
	m.recordEvent(who, s.kind, "for "+s.duration.String())
	after := ""
	switch s.kind {
	case stepKill:
		m.terminate(syscall.SIGKILL)
		m.recordEvent(who, "killed", "")
	case stepLeave:
		m.terminate(syscall.SIGTERM)
		m.recordEvent(who, "left", "")
	case stepFreeze:
		m.signal(syscall.SIGSTOP)
		after = "thawed"
	case stepHold:
		m.proxy.hold()
		after = "healed"
	case stepCut:
		m.proxy.cut()
		after = "healed"
	}
	time.Sleep(s.duration)
	if s.kind == stepFreeze {
		m.signal(syscall.SIGCONT)
	}
	m.proxy.heal()
	if after == "" {
		m.start()
	} else {
		m.recordEvent(who, after, "")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isDisturbed = false
}

// pick is for what no seed has to repeat.
func pick(n int) int { return rand.IntN(n) } //nolint:gosec // no secret

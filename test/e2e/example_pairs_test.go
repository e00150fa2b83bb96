package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// electionPlay plays several examples at the same time, step by step.
type electionPlay struct {
	events   []string // one per step; an empty one is an edit alone
	isPair   bool
	patience time.Duration // for each step
	random   *rand.Rand
	examples []*electedExample
}

// electedExample is one example with its processes. A step that fails ends it.
type electedExample struct {
	exampleProgram
	ns        string
	object    *unstructured.Unstructured
	env, args []string
	patience  time.Duration
	isLate    bool // the next kill waits for a call, or the next edit for the end of the restart

	processes map[string]*gexec.Session // by identity, also those that have ended
	read      map[string]int            // how much of the log of each process earlier steps have counted
	calls     []map[string]int          // by step
	failure   error
}

func (p *electionPlay) add(ctx context.Context, program exampleProgram) {
	GinkgoHelper()
	ns := namespace(ctx)
	build(program.folder)
	program.applyFiles(ctx, ns)
	e := &electedExample{
		exampleProgram: program, ns: ns, object: program.object(ns), args: []string{"-n", ns, "--leader-elect=false"},
		patience: p.patience, processes: map[string]*gexec.Session{}, read: map[string]int{},
	}
	if p.isPair {
		e.args = []string{"-n", ns, "--leader-elect=true", "--leader-elect-id=" + ns}
	}
	p.examples = append(p.examples, e)
}

func (p *electionPlay) find(name string) *electedExample {
	for _, e := range p.examples {
		if e.name == name {
			return e
		}
	}
	return nil
}

// run plays the creation, an edit with each event, and the deletion.
func (p *electionPlay) run(ctx context.Context) {
	GinkgoHelper()
	defer func() {
		for _, e := range p.examples {
			for _, process := range e.processes {
				process.Kill()
			}
		}
	}()
	p.step("create", func(e *electedExample) error {
		if err := e.start(); err != nil {
			return err
		}
		if p.isPair {
			if err := e.start(); err != nil {
				return err
			}
		}
		if err := api.Create(ctx, e.object); err != nil {
			return err
		}
		return e.awaitHandled(ctx, "")
	})
	for i, event := range p.events {
		marker := fmt.Sprintf("edit-%d", i)
		for _, e := range p.examples {
			e.isLate = p.random != nil && p.random.IntN(2) == 0
		}
		if event == "restart" {
			p.step("edits before a restart", func(e *electedExample) error {
				if e.isLate {
					return nil
				}
				return e.edit(ctx, marker)
			})
			restartServer()
		}
		p.step(event+" "+marker, func(e *electedExample) error { return e.during(ctx, event, marker) })
		p.count()
	}
	p.step("delete", func(e *electedExample) error {
		if err := api.Delete(ctx, e.object); err != nil {
			return err
		}
		return e.poll(ctx, "the deletion", func() bool {
			left, err := now(ctx, e.object)()
			return err == nil && left == nil
		})
	})
	p.count()
}

// step runs a function for all examples at once. Before that, the calls of the creation are counted.
func (p *electionPlay) step(name string, do func(*electedExample) error) {
	By(name)
	var all sync.WaitGroup
	for _, e := range p.examples {
		if e.failure == nil {
			all.Go(func() {
				defer GinkgoRecover()
				if err := do(e); err != nil {
					e.failure = fmt.Errorf("%s: %w", name, err)
				}
			})
		}
	}
	all.Wait()
	if name == "create" {
		p.count()
	}
}

func (p *electionPlay) count() {
	for _, e := range p.examples {
		e.calls = append(e.calls, e.newCalls())
	}
}

// start starts one more process.
func (e *electedExample) start() error {
	id := fmt.Sprintf("p%d", len(e.processes))
	session, err := startProcess(programPath(e.folder), append([]string{"POD_ID=" + id}, e.env...), e.args...)
	if err == nil {
		e.processes[id] = session
	}
	return err
}

// during edits the object while the event happens, and waits until the edit is handled.
func (e *electedExample) during(ctx context.Context, event, marker string) error {
	if event == "" || event == "restart" {
		if event == "" || e.isLate {
			if err := e.edit(ctx, marker); err != nil {
				return err
			}
		}
		return e.awaitHandled(ctx, marker)
	}
	holder, err := e.holder(ctx)
	if err != nil {
		return err
	}
	switch event {
	case "freeze":
		return e.freeze(ctx, holder, marker)
	case "kill":
		err = e.kill(ctx, holder, marker)
	case "roll":
		err = e.roll(ctx, holder, marker)
	}
	if err != nil {
		return err
	}
	return e.awaitHandled(ctx, marker)
}

func (e *electedExample) freeze(ctx context.Context, holder *gexec.Session, marker string) error {
	holder.Signal(syscall.SIGSTOP)
	isStopped := func() bool { state, err := processState(holder)(); return err == nil && state == "T" }
	if err := e.poll(ctx, "the end of the process's time", isStopped); err != nil {
		return err
	}
	before := len(holder.Err.Contents())
	if err := e.edit(ctx, marker); err != nil {
		return err
	}
	if err := e.awaitHandled(ctx, marker); err != nil {
		return err
	}
	holder.Signal(syscall.SIGCONT)
	return e.poll(ctx, "the pause of the frozen process", func() bool {
		log := string(holder.Err.Contents()[before:])
		return strings.Contains(log, "Pausing operations, as the Lease was taken over")
	})
}

// kill kills the holder after the edit: at once, or when a handler has logged.
func (e *electedExample) kill(ctx context.Context, holder *gexec.Session, marker string) error {
	before := len(holder.Err.Contents())
	if err := e.edit(ctx, marker); err != nil {
		return err
	}
	if e.isLate {
		_ = e.poll(ctx, "a call", func() bool { // without a handler for this edit, the configuration is stored
			return strings.Contains(string(holder.Err.Contents()[before:]), "handler=") || e.isHandled(ctx, marker)
		})
	}
	holder.Kill().Wait(waitTimeout)
	return e.start()
}

// roll replaces the holder by a new process, as a Deployment does.
func (e *electedExample) roll(ctx context.Context, holder *gexec.Session, marker string) error {
	id := fmt.Sprintf("p%d", len(e.processes))
	if err := e.start(); err != nil {
		return err
	}
	err := e.poll(ctx, "the next process", func() bool {
		return strings.Contains(string(e.processes[id].Err.Contents()), "Another process holds the Lease")
	})
	if err != nil {
		return err
	}
	if err := e.edit(ctx, marker); err != nil {
		return err
	}
	holder.Terminate()
	return e.poll(ctx, "the exit", func() bool { return holder.ExitCode() >= 0 })
}

// holder waits until a running process holds the Lease.
func (e *electedExample) holder(ctx context.Context) (holder *gexec.Session, err error) {
	lease := &coordinationv1.Lease{}
	err = e.poll(ctx, "a holder", func() bool {
		err := api.Get(ctx, client.ObjectKey{Namespace: "default", Name: e.ns}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false
		}
		id, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		holder = e.processes[id]
		return holder != nil && holder.ExitCode() < 0
	})
	return holder, err
}

// edit changes a field that the handlers of the kind use. Other kinds get an annotation.
func (e *electedExample) edit(ctx context.Context, marker string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"edited":%q}}}`, marker)
	switch e.object.GetKind() {
	case "KopfExample":
		patch = fmt.Sprintf(`{"spec":{"field":%q}}`, marker)
	case "Website":
		patch = fmt.Sprintf(`{"spec":{"title":%q}}`, marker)
	}
	return api.Patch(ctx, e.object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (e *electedExample) awaitHandled(ctx context.Context, marker string) error {
	return e.poll(ctx, "the end of the handling", func() bool { return e.isHandled(ctx, marker) })
}

// isHandled reports whether the last-handled configuration has the edit: it is written after all handlers.
func (e *electedExample) isHandled(ctx context.Context, marker string) bool {
	current := e.object.DeepCopy()
	if err := api.Get(ctx, client.ObjectKeyFromObject(e.object), current); err != nil {
		return false
	}
	for key, value := range current.GetAnnotations() {
		if strings.HasSuffix(key, lastHandledSuffix) && strings.Contains(value, marker) {
			return true
		}
	}
	return false
}

func (e *electedExample) poll(ctx context.Context, what string, isTrue func() bool) error {
	check := func(context.Context) (bool, error) { return isTrue(), nil }
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, e.patience, true, check); err != nil {
		return fmt.Errorf("waiting for %s in namespace %s: %w", what, e.ns, err)
	}
	return nil
}

// finalOutcome matches the log line of a finished call for a change.
var finalOutcome = regexp.MustCompile(
	`Handler (?:succeeded|failed permanently|failed; its errors are ignored) ` +
		`.*handler=(\S+) reason=(create|update|delete)`,
)

// newCalls counts the finished calls since the last count, by handler and reason.
func (e *electedExample) newCalls() map[string]int {
	counts := map[string]int{}
	for id, process := range e.processes {
		log := string(process.Err.Contents())
		for line := range strings.Lines(log[e.read[id]:]) {
			if found := finalOutcome.FindStringSubmatch(line); found != nil {
				counts[found[1]+" "+found[2]]++
			}
		}
		e.read[id] = len(log)
	}
	return counts
}

// restartServer stops kube-apiserver and starts it again with the same addresses and certificates.
func restartServer() {
	GinkgoHelper()
	server := environment.ControlPlane.APIServer
	Expect(server.Stop()).To(Succeed())
	Expect(server.Start()).To(Succeed())
}

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	change = kopf.Change[*unstructured.Unstructured]
	run    = kopf.Task[*unstructured.Unstructured]
)

var errKilled = errors.New("the process is dead")

// relayGo is our operator with the handlers of relay.py, in lives that end between two instructions.
type relayGo struct {
	plan       map[string]string
	killSwitch *killSwitch
	cancel     func()

	mu            sync.Mutex
	recordedCalls []call
}

// killSwitch is the end of one life: after it, no request reaches the server.
type killSwitch struct {
	killed chan struct{}
	isCut  atomic.Bool
	next   http.RoundTripper
}

func (d *killSwitch) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.isCut.Load() {
		return nil, errKilled
	}
	return d.next.RoundTrip(r)
}

func (o *relayGo) start(namespace string, plan map[string]string) {
	GinkgoHelper()
	dead := &killSwitch{killed: make(chan struct{})}
	o.plan, o.killSwitch = plan, dead
	o.recordedCalls = nil
	settings := kopf.AsKopf()
	settings.Namespaces = []string{namespace}
	op := kopf.New("interop.example.org", settings)
	o.register(kopf.ForResource(op, "kopf.dev/v1", "kopfexamples"))
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { dead.next = next; return dead })
	cancel, done := manage(own, nil, op)
	o.cancel = sync.OnceFunc(func() {
		dead.isCut.Store(true)
		close(dead.killed)
		cancel()
		Eventually(done).Should(Receive())
	})
	DeferCleanup(o.kill)
}

func (o *relayGo) kill() { o.cancel() }

func (o *relayGo) calls() []call {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.recordedCalls)
}

func (o *relayGo) register(examples kopf.Selection[*unstructured.Unstructured]) {
	examples.OnCreate("c1", o.handle("c1"))
	examples.OnCreate("c2", o.handle("c2"))
	examples.OnUpdate("u1", o.handle("u1"))
	examples.OnUpdate("u2", o.handle("u2"))
	examples.OnField("f", "spec.field", o.handle("f"))
	examples.WithLabel("resumed", "yes").OnResume("r", o.handle("r"), kopf.EvenIfDeleted())
	examples.WithLabel("held", "yes").OnDelete("d1", o.handle("d1"))
	examples.WithLabel("held", "yes").OnDelete("d2", o.handle("d2"))
	examples.WithLabel("optional", "yes").OnDelete("o", o.handle("o"), kopf.Optional())
	examples.WithLabel("daemon", "yes").Daemon("w", o.watch)
	examples.WithLabel("timer", "yes").Timer("t", time.Second, func(context.Context, *run) error { return nil })
}

func (o *relayGo) note(one call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.killSwitch.isCut.Load() {
		o.recordedCalls = append(o.recordedCalls, one)
	}
}

func (o *relayGo) handle(id string) kopf.ChangeFunc[*unstructured.Unstructured] {
	dead := o.killSwitch
	return func(_ context.Context, c *change) error {
		name, value := c.Object.GetName(), field(c.Object)
		does := o.does(name, id, value, "return")
		if does == "once" && c.Retry > 0 {
			does = "return"
		}
		o.note(call{ID: id, Name: name, Action: does, Reason: string(c.Reason), Old: field(c.Old), New: value})
		switch {
		case does == "hang":
			<-dead.killed
			return errKilled
		case does == "later" || does == "once":
			return kopf.Temporary(fmt.Errorf("later"), 2*time.Second)
		case id == "c1":
			c.SetResult(map[string]string{"by": "anybody"})
		}
		return nil
	}
}

func (o *relayGo) watch(_ context.Context, r *run) error {
	dead, name := o.killSwitch, r.Latest().GetName()
	does := o.does(name, "w", field(r.Latest()), "wait")
	o.note(call{ID: "w", Name: name, Action: does})
	if does == "end" { // when nothing else happens to the object any more
		select {
		case <-time.After(2 * time.Second):
		case <-dead.killed:
		}
		return nil
	}
	select {
	case <-r.Stopping():
		o.note(call{ID: "w", Name: name, Action: "stopping"})
	case <-dead.killed:
	}
	if does == "hang" {
		<-dead.killed
	}
	return nil
}

func (o *relayGo) does(name, id, value, otherwise string) string {
	if planned, ok := o.plan[name+"/"+id+"/"+value]; ok {
		return planned
	}
	return otherwise
}

func field(object *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(object.Object, "spec", "field")
	return value
}

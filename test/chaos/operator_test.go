package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// operatorVariable is the environment variable that turns the test binary into an operator: the operator's settings as
// JSON.
const operatorVariable = "CHAOS_OPERATOR"

// operator contains the settings of one process. The test starts it, and it reports its actions to the Collector.
type operator struct {
	Identity    string
	Priority    int
	Lifetime    time.Duration
	ClockOffset time.Duration // how far it is ahead
	Collector   string
	AsKopf      bool // has the memory of objects where Kopf has it
	Shards      int  // shares the objects with its replicas; zero has peers
}

// operatorProcess is an operator in its process.
type operatorProcess struct {
	operator

	calls atomic.Int64
}

// report is what an operator says.
type report struct {
	Kind   string // begin, writing, wrote, refused, end, stall
	By     string // the identity
	Call   string
	Object string
	Change int64
	Text   string        // how the call ended, or why a write was refused
	Lasted time.Duration // how long the process stood still before
}

// runOperator runs the operator and returns its exit code.
func runOperator(about string) int {
	o := &operatorProcess{}
	err := json.Unmarshal([]byte(about), &o.operator)
	if err == nil {
		go o.reportStalls()
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o *operatorProcess) run() error {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.UserAgent = o.Identity
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wrongClock{next, o.ClockOffset} })
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: runtime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	settings := kopf.Settings{}
	if o.AsKopf {
		settings = kopf.AsKopf()
	}
	handle := o.handle
	if o.Shards > 0 {
		settings.Sharding, handle = kopf.ShardingSettings{Shards: o.Shards}, o.handleShared
	} else {
		settings.Peering = kopf.PeeringSettings{
			Name: peeringName, Priority: o.Priority, Lifetime: o.Lifetime, Identity: o.Identity, Mandatory: true,
		}
	}
	op := kopf.New("chaos.example.org", settings)
	// The mapper of the client does not respect contexts: without this, the first write of a handler could stand in it
	// during an outage, and longer than the handler may run.
	op.OnStartup("map", func(context.Context, *kopf.Activity) error {
		_, err := manager.GetRESTMapper().RESTMapping(schema.GroupKind{Group: "kopf.dev", Kind: "KopfExample"}, "v1")
		return err
	}, kopf.Backoff(time.Second))
	objects := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	objects.OnCreate("created", handle)
	objects.OnUpdate("updated", handle)
	if err := op.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// handle takes about a second, and writes something now and then. It heeds its context, as handlers should.
func (o *operatorProcess) handle(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	change, _, _ := unstructured.NestedInt64(c.Object.Object, "spec", "change")
	about := report{
		By: o.Identity, Call: fmt.Sprintf("%s-%d", o.Identity, o.calls.Add(1)), Object: c.Object.GetName(),
		Change: change,
	}
	o.say(about, "begin", "")
	for step := range 3 {
		select {
		case <-ctx.Done():
			o.say(about, "end", context.Cause(ctx).Error())
			return ctx.Err()
		case <-time.After(time.Duration(100+rand.IntN(500)) * time.Millisecond):
		}
		name := fmt.Sprintf("%s-%d", about.Call, step)
		o.say(about, "writing", name)
		if err := c.Client.Create(ctx, newMark(name)); err != nil {
			o.say(about, "refused", err.Error())
			continue
		}
		o.say(about, "wrote", name)
	}
	o.say(about, "end", outcomeDone)
	return nil
}

// outcomeDone is how a call ends that is not to be repeated.
const outcomeDone = "done"

// newMark is what handlers write.
func newMark(name string) *unstructured.Unstructured {
	mark := &unstructured.Unstructured{}
	mark.SetAPIVersion("v1")
	mark.SetKind("ConfigMap")
	mark.SetNamespace(namespace)
	mark.SetName(name)
	return mark
}

// say sends a report to the test and returns when it has arrived.
func (o *operatorProcess) say(about report, kind, text string) {
	about.Kind, about.Text = kind, text
	o.send(about)
}

func (o *operatorProcess) send(about report) {
	body, err := json.Marshal(about)
	if err == nil {
		err = post(o.Collector, body)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nobody listens:", err)
		os.Exit(1) // the test has ended
	}
}

func post(to string, body []byte) error {
	response, err := http.Post(to, "application/json", bytes.NewReader(body)) //nolint:gosec,noctx // ends with it all
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// reportStalls reports when the process has stood still, whether frozen or without a processor.
func (o *operatorProcess) reportStalls() {
	for before := time.Now(); ; {
		time.Sleep(tick)
		now := time.Now()
		if still := now.Sub(before) - tick; still > tick {
			o.send(report{Kind: "stall", By: o.Identity, Lasted: still})
		}
		before = now
	}
}

const tick = 100 * time.Millisecond

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOurs shows with five of our operators that no two act at once, that pauses are short, and that each object is
// handled finally.
func TestOurs(t *testing.T) {
	lifetime := duration(t, "CHAOS_LIFETIME", 6*time.Second)
	g := newChaosRun(t, lifetime, 5)
	for i, priority := range g.plan.priorities {
		g.fleet.join(operator{
			Identity: fmt.Sprintf("%c%d", 'e'-rune(i), i), Priority: priority, Lifetime: lifetime,
			ClockOffset: g.plan.clockOffsets[i],
		}, false)
	}
	g.judge(g.play(), func(*call, *call) bool { return true })
}

// chaosRun is one play: its plan, its operators, and objects that change.
type chaosRun struct {
	t        *testing.T
	lifetime time.Duration
	plan     plan
	fleet    *fleet
	ledger   *ledger
	changes  map[string]int64 // the last one of each object
}

func newChaosRun(t *testing.T, lifetime time.Duration, operators int) *chaosRun {
	t.Helper()
	g := &chaosRun{t: t, lifetime: lifetime, ledger: newLedger(t), changes: map[string]int64{}}
	number := seed(t)
	g.plan = newPlan(number, operators, duration(t, "CHAOS_FOR", 35*time.Second), lifetime)
	t.Logf("CHAOS_SEED=%d; lifetime %s; %s", number, lifetime, g.plan)
	g.fleet = &fleet{t: t, ledger: g.ledger, host: config.Host, kubeconfig: kubeconfig, spared: 2}
	place := &unstructured.Unstructured{}
	place.SetAPIVersion("kopf.dev/v1")
	place.SetKind("ClusterKopfPeering")
	place.SetName(peeringName)
	if err := api.Create(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		g.must(api.Delete(ctx, place))
		g.must(api.DeleteAllOf(ctx, newMark(""), client.InNamespace(namespace)))
	})
	for i := range 6 {
		object := newObject(fmt.Sprintf("o%d", i))
		g.must(api.Create(t.Context(), object))
		t.Cleanup(func() { g.discard(object) })
	}
	return g
}

func newObject(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"change": int64(0)}}}
	object.SetAPIVersion("kopf.dev/v1")
	object.SetKind("KopfExample")
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func (g *chaosRun) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Error(err)
	}
}

// discard removes an object whose operators are gone.
func (g *chaosRun) discard(object client.Object) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	g.must(api.Patch(context.Background(), object, patch))
	g.must(client.IgnoreNotFound(api.Delete(context.Background(), object)))
}

// play plays the plan while objects change, and waits until the last changes are handled.
func (g *chaosRun) play() *callHistory {
	g.t.Helper()
	g.wait("nobody begins", func() bool { return g.ledger.actingOperator() != "" })
	ctx, stop := context.WithCancel(g.t.Context())
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		g.change(ctx)
	}()
	g.fleet.play(ctx, g.plan.steps)
	stop()
	<-changed
	g.wait("the last changes are not handled", g.handled)
	for _, m := range g.fleet.members {
		m.terminate(15) // SIGTERM
	}
	return newCallHistory(g.ledger.history(), g.marks())
}

// change changes one object after the other, by chance.
func (g *chaosRun) change(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(200+pick(400)) * time.Millisecond):
		}
		name := fmt.Sprintf("o%d", pick(6))
		g.changes[name]++
		patch := []byte(fmt.Sprintf(`{"spec":{"change":%d}}`, g.changes[name]))
		limitless := context.WithoutCancel(ctx)
		g.must(api.Patch(limitless, newObject(name), client.RawPatch(types.MergePatchType, patch)))
	}
}

// handled reports whether each object was handled in its present state.
func (g *chaosRun) handled() bool {
	ended := map[string]bool{}
	for _, e := range g.ledger.history() {
		if e.Kind == "end" && e.Text == outcomeDone {
			ended[fmt.Sprint(e.Object, e.Change)] = true
		}
	}
	for name, last := range g.changes {
		if !ended[fmt.Sprint(name, last)] {
			return false
		}
	}
	return true
}

func (g *chaosRun) wait(complaint string, until func() bool) {
	g.t.Helper()
	for end := time.Now().Add(waitTimeout); !until(); time.Sleep(tick) {
		if time.Now().After(end) {
			g.t.Fatalf("%s, for %s:\n%s", complaint, waitTimeout, g.tail())
		}
	}
}

// tail returns the end of the history.
func (g *chaosRun) tail() string {
	all := g.ledger.history()
	all = slices.DeleteFunc(all, func(e event) bool { return e.By == testIdentity })
	return lines(all[max(0, len(all)-60):])
}

func lines(events []event) string {
	var text strings.Builder
	for _, e := range events {
		text.WriteString(e.String() + "\n")
	}
	return text.String()
}

// marks returns the marks that handlers have written, read from the API server.
func (g *chaosRun) marks() map[string]bool {
	g.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	g.must(api.List(context.Background(), list, client.InNamespace(namespace)))
	all := map[string]bool{}
	for _, one := range list.Items {
		all[one.GetName()] = true
	}
	return all
}

// judge fails for forbidden events among the counted calls, and prints the figures.
func (g *chaosRun) judge(a *callHistory, counts func(first, second *call) bool) {
	g.t.Helper()
	verdicts := map[string]int{}
	for _, o := range a.overlaps(counts) {
		verdicts[o.verdict]++
		if o.verdict != verdictHarmless {
			g.t.Errorf("%s: %s and %s\n%s", o.verdict, o.first.beginReport.Call, o.second.beginReport.Call,
				a.excerpt(o, 2*g.lifetime))
			break
		}
	}
	silences, longest := a.silences(g.lifetime + 10*time.Second)
	for _, s := range silences {
		g.t.Errorf("no operator has acted for %s after: %s", s.duration, s.lastEvent)
	}
	repeats := a.repeatedCalls(counts)
	if len(repeats) > 0 {
		g.t.Errorf("handled again, and nothing had happened: %s", strings.Join(repeats, "; "))
	}
	if file := os.Getenv("CHAOS_HISTORY"); file != "" {
		g.must(os.WriteFile(file, []byte(lines(g.ledger.history())), 0o600))
	}
	if g.t.Failed() {
		g.t.Logf("the history ends so:\n%s", g.tail())
	}
	g.t.Logf("%s; overlaps %v, late writes %d; %d calls; the longest time without anybody acting: %s",
		a.figures(g.changes), verdicts, a.countLateWrites(), len(a.calls), longest.Round(time.Millisecond))
}

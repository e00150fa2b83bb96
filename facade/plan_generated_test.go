package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
)

// generatedOperators is the number of generated operators of the test.
const generatedOperators = 60

// operatorDesign describes a generated operator.
type operatorDesign struct {
	name     string
	asKopf   bool
	handlers []handlerDesign
}

// handlerDesign describes a generated handler.
type handlerDesign struct {
	id, verb string
	filter   string // none, label, data, index
}

var (
	plannedVerbs = []string{
		"create", "create", "update", "update", "delete", "resume", "field", "all", "daemon", "timer", "event",
		"optional", "changed",
	}
	plannedFilters = []string{"none", "none", "none", "label", "data", "index"}
)

// generateHandler returns a random handler.
func generateHandler(rng *rand.Rand, number int) handlerDesign {
	verb := plannedVerbs[rng.IntN(len(plannedVerbs))]
	return handlerDesign{
		id: fmt.Sprintf("%s-%d", verb, number), verb: verb, filter: plannedFilters[rng.IntN(len(plannedFilters))],
	}
}

// generateOperator returns a random operator.
func generateOperator(rng *rand.Rand) operatorDesign {
	d := operatorDesign{name: "first.example.org", asKopf: rng.IntN(4) == 0}
	for number := range 2 + rng.IntN(5) {
		d.handlers = append(d.handlers, generateHandler(rng, number))
	}
	return d
}

// nextVersion returns the operator with random changes: of its handlers, their filters, its name and its storages.
func (d operatorDesign) nextVersion(rng *rand.Rand) operatorDesign {
	d.handlers = slices.Clone(d.handlers)
	if rng.IntN(3) == 0 {
		d.handlers = slices.Delete(d.handlers, 0, 1)
	}
	if rng.IntN(2) == 0 {
		d.handlers = append(d.handlers, generateHandler(rng, 10))
	}
	if i := rng.IntN(len(d.handlers)); rng.IntN(2) == 0 {
		d.handlers[i].filter = plannedFilters[rng.IntN(len(plannedFilters))]
	}
	if rng.IntN(5) == 0 {
		d.name = "second.example.org"
	}
	if rng.IntN(5) == 0 {
		d.asKopf = !d.asKopf
	}
	return d
}

// plannedCalls records which handlers were called for which objects.
type plannedCalls struct {
	mu    sync.Mutex
	calls []string
}

// note records a call.
func (r *plannedCalls) note(object, handler string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, object+" "+handler)
}

// sorted returns the different calls.
func (r *plannedCalls) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(r.calls)))
}

// build makes the operator. Each handler records its call, and returns the error for it.
func (d operatorDesign) build(calls *plannedCalls, fail func(object, handler string) error) *kopf.Operator {
	settings := kopf.Settings{}
	if d.asKopf {
		settings = kopf.AsKopf()
		settings.Peering = kopf.PeeringSettings{Standalone: true}
	}
	op := kopf.New(d.name, settings)
	maps := kopf.For(op, &corev1.ConfigMap{})
	byColour := kopf.NewIndex(maps, "by-colour",
		func(_ context.Context, m *corev1.ConfigMap) (map[string]string, error) {
			return map[string]string{m.Data["colour"]: m.Name}, nil
		})
	for _, h := range d.handlers {
		selected := maps
		switch h.filter {
		case "label":
			selected = maps.MatchingLabels("tier=prod")
		case "data":
			selected = maps.When(func(_ context.Context, m *corev1.ConfigMap) bool { return m.Data["size"] == "1" })
		case "index":
			selected = maps.When(func(_ context.Context, m *corev1.ConfigMap) bool {
				return byColour.Count(m.Data["colour"]) > 2
			})
		}
		h.register(selected, calls, fail)
	}
	return op
}

// register registers the handler with the selection.
func (h handlerDesign) register(
	maps kopf.Selection[*corev1.ConfigMap], calls *plannedCalls, fail func(object, handler string) error,
) {
	change := func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		calls.note(c.Object.Name, h.id)
		return fail(c.Object.Name, h.id)
	}
	task := func(ctx context.Context, c *kopf.Task[*corev1.ConfigMap]) error {
		calls.note(c.Object.Name, h.id)
		if h.verb == "daemon" {
			<-ctx.Done()
		}
		return nil
	}
	switch h.verb {
	case "create":
		maps.OnCreate(h.id, change)
	case "update":
		maps.OnUpdate(h.id, change)
	case "changed":
		maps.OnUpdate(h.id, change, kopf.InField("data.colour"))
	case "delete":
		maps.OnDelete(h.id, change)
	case "optional":
		maps.OnDelete(h.id, change, kopf.Optional())
	case "resume":
		maps.OnResume(h.id, change)
	case "field":
		maps.OnField(h.id, "data.size", change)
	case "all":
		maps.On(h.id, kopf.CreateUpdateResume(), change)
	case "daemon":
		maps.Daemon(h.id, task)
	case "timer":
		maps.Timer(h.id, 24*time.Hour, task)
	case "event":
		maps.OnEvent(h.id, func(_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
			if e.Type == "" { // an object of the first list
				calls.note(e.Object.Name, h.id)
			}
			return nil
		})
	}
}

// plannedWorld is a cluster with objects that an operator has handled in part.
type plannedWorld struct {
	t      *testing.T
	rng    *rand.Rand
	server *memapi.Server
	users  client.Client
}

// newPlannedWorld returns a world with some objects.
func newPlannedWorld(t *testing.T, rng *rand.Rand) *plannedWorld {
	t.Helper()
	server, scheme := memapi.New(), runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	users, err := client.New(memapi.Config(server), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &plannedWorld{t, rng, server, users}
	for i := range 8 {
		w.createMap(fmt.Sprintf("map-%d", i))
	}
	return w
}

// createMap creates a config map with random values.
func (w *plannedWorld) createMap(name string) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	w.fill(object)
	if err := w.users.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// fill sets random values.
func (w *plannedWorld) fill(object *corev1.ConfigMap) {
	object.Data = map[string]string{
		"size": fmt.Sprint(w.rng.IntN(3)), "colour": []string{"red", "blue"}[w.rng.IntN(2)],
	}
	if object.Labels = nil; w.rng.IntN(2) == 0 {
		object.Labels = map[string]string{"tier": "prod"}
	}
}

// editAll changes, deletes and adds objects as users do.
func (w *plannedWorld) editAll() {
	var all corev1.ConfigMapList
	if err := w.users.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		object, err := &all.Items[i], error(nil)
		switch w.rng.IntN(5) {
		case 0:
			err = w.users.Delete(w.t.Context(), object)
		case 1, 2:
			before := object.DeepCopy()
			w.fill(object)
			err = w.users.Patch(w.t.Context(), object, client.MergeFrom(before))
		}
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
	w.createMap(fmt.Sprintf("map-%d", 100+len(all.Items)*100+w.rng.IntN(100)))
}

// expectedCalls returns the calls that the report predicts, and counts them by the cause and the state of the handler.
func expectedCalls(report *planning.ChangePlan, counts map[string]int) (all []string) {
	for _, o := range report.Objects {
		for _, h := range o.Handlers {
			counts[o.Reason]++
			counts[h.State]++
			if h.State == planning.Called || h.State == planning.Retried {
				id, _, _ := strings.Cut(h.Handler, "/") // without the field
				all = append(all, o.Name+" "+id)
			}
		}
		counts["leftovers"] += len(o.Leftovers)
		for _, id := range slices.Concat(o.Starting, o.Notified) {
			all = append(all, o.Name+" "+id)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestPlanOfGeneratedOperators compares the plan with the calls of the operator when it starts: those of the first pass
// over each object. All handlers fail then, so that no later pass follows.
func TestPlanOfGeneratedOperators(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(generatedOperators) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkGeneratedPlan(t, rand.New(rand.NewPCG(seed, 45)), counts) })
		})
	}
	// The numbers show that the comparison is not about empty lists.
	t.Logf("handlers by cause and state: %v", counts)
	for _, of := range []string{
		"create", "update", "delete", "resume", planning.Called, planning.Retried, planning.Waiting, planning.Finished,
		"leftovers",
	} {
		if counts[of] == 0 {
			t.Errorf("the generated operators must include %q: %v", of, counts)
		}
	}
}

// checkGeneratedPlan checks the plan of one operator, and counts its handlers.
func checkGeneratedPlan(t *testing.T, rng *rand.Rand, counts map[string]int) {
	t.Helper()
	w := newPlannedWorld(t, rng)
	// The former version leaves handled objects and unfinished records behind.
	former := generateOperator(rng)
	salt := rng.Uint32()
	first := facadetest.Start(t, former.build(&plannedCalls{}, func(object, handler string) error {
		outcome := crc32.ChecksumIEEE(fmt.Append(nil, object, handler, salt))
		switch outcome % 4 {
		case 0:
			return kopf.Temporary(errors.New("not yet"), time.Duration(10+outcome/4%80)*time.Minute)
		case 1:
			return kopf.Permanent(errors.New("never"))
		default:
			return nil
		}
	}), facadetest.Against(memapi.Config(w.server)))
	first.Ready()
	time.Sleep(time.Minute)
	w.editAll()
	if rng.IntN(2) == 0 { // the former version has begun some of the changes
		time.Sleep(time.Minute)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if rng.IntN(2) == 0 {
		w.editAll()
	}
	// Retries are due at whole minutes: none becomes due between the plan and the calls.
	time.Sleep(time.Duration(rng.IntN(90))*time.Minute + 30*time.Second)

	design := former.nextVersion(rng)
	connection := w.server.Connect()
	report, err := kopf.PlanOf(t.Context(), design.build(nil, nil), memapi.Config(connection))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range connection.DrainRequests() {
		if r.Verb != "get" && r.Verb != "list" {
			t.Errorf("a plan must only read, but it sent %s %s", r.Verb, r.Name)
		}
	}

	calls := &plannedCalls{}
	second := facadetest.Start(t, design.build(calls, func(string, string) error {
		return kopf.Temporary(errors.New("later"), 24*time.Hour)
	}), facadetest.Against(memapi.Config(w.server)))
	second.Ready()
	time.Sleep(time.Second)
	expected := expectedCalls(report, counts)
	if diff := cmp.Diff(expected, calls.sorted()); diff != "" {
		t.Errorf("the plan (-) must have the handlers of the first passes (+) of %+v after %+v:\n%s",
			design, former, diff)
	}
}

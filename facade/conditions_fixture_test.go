package kopf_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// conditionFixture is an API server with houses that have conditions, on virtual time, with functions to run an
// operator.
type conditionFixture struct {
	t      *testing.T
	api    *memapi.Server
	houses memapi.Resource
}

// withConditionFixture calls the function on virtual time. The edit changes the CRD of houses first.
func withConditionFixture(t *testing.T, edit func(r *memapi.Resource), play func(e conditionFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := conditionFixture{t, memapi.New(), houses}
		if edit != nil {
			edit(&e.houses)
		}
		e.api.Install(e.houses)
		play(e)
	})
}

// lines records the lines of a log.
type lines struct {
	mu    sync.Mutex
	texts []string
}

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, prefix+" "+args)
}

// with returns the lines that contain the text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.texts {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// run starts an operator and waits until it is idle.
func (e conditionFixture) run(register func(s kopf.Selection[*kopf.Unstructured]), given ...kopf.Settings) (
	way *memapi.Connection, log *lines, stop func(),
) {
	e.t.Helper()
	return e.runAs("test.example.org", register, given...)
}

// runAs is like run, for an operator with the name.
func (e conditionFixture) runAs(name string, register func(s kopf.Selection[*kopf.Unstructured]),
	given ...kopf.Settings) (
	way *memapi.Connection, log *lines, stop func(),
) {
	e.t.Helper()
	op := kopf.New(name, given...)
	register(kopf.ForResource(op, e.apiVersion(), e.houses.Plural))
	way, log = e.api.Connect(), &lines{}
	return way, log, e.serve(op, way, log)
}

// serve starts an operator in a manager and waits until it is idle.
func (e conditionFixture) serve(op *kopf.Operator, way *memapi.Connection, log *lines) (stop func()) {
	e.t.Helper()
	stop = operate(e.t, way, op, funcr.New(log.add, funcr.Options{}))
	e.settle()
	return stop
}

func (e conditionFixture) apiVersion() string {
	return schema.GroupVersion{Group: e.houses.Group, Version: e.houses.Version}.String()
}

// settle waits longer than a start or the requests of a pass take, but less than the delay of a retry.
func (e conditionFixture) settle() { time.Sleep(2 * time.Second); synctest.Wait() }

// createHouse creates a house as a user does, and waits.
func (e conditionFixture) createHouse(spec map[string]any) {
	e.t.Helper()
	people, err := memapi.NewClient(e.api, e.houses)
	if err == nil {
		err = people.Create(e.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": e.apiVersion(), "kind": e.houses.Kind, "spec": spec,
			"metadata": map[string]any{"name": "home", "namespace": "default"},
		}})
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.settle()
}

// edit changes the house as another client does, and waits.
func (e conditionFixture) edit(change func(house map[string]any)) {
	e.t.Helper()
	e.api.Edit(e.houses, "default", "home", change)
	e.settle()
}

// remove deletes the house as a user does, and waits.
func (e conditionFixture) remove() {
	e.t.Helper()
	people, err := memapi.NewClient(e.api, e.houses)
	if err == nil {
		err = people.Delete(e.t.Context(), e.house())
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.settle()
}

func (e conditionFixture) house() *kopf.Unstructured {
	return &unstructured.Unstructured{Object: e.api.Object(e.houses, "default", "home")}
}

// summary returns the conditions in short, followed by the observed generation.
func (e conditionFixture) summary() (all []string) {
	house := e.house()
	list, _, _ := unstructured.NestedSlice(house.Object, "status", "conditions")
	for _, item := range list {
		held, _ := item.(map[string]any)
		all = append(all, fmt.Sprintf(
			"%v=%v %v@%v: %v", held["type"], held["status"], held["reason"], held["observedGeneration"],
			held["message"],
		))
	}
	observed, _, _ := unstructured.NestedInt64(house.Object, "status", "observedGeneration")
	return append(all, fmt.Sprintf("observed %d of %d", observed, house.GetGeneration()))
}

// transitionTime returns the transition time of the condition.
func (e conditionFixture) transitionTime(conditionType string) string {
	list, _, _ := unstructured.NestedSlice(e.house().Object, "status", "conditions")
	for _, item := range list {
		if held, _ := item.(map[string]any); held["type"] == conditionType {
			return fmt.Sprint(held["lastTransitionTime"])
		}
	}
	return ""
}

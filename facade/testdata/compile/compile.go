// Package compile shows what compiles and what does not. In a line that does not, the comment after want is a part of
// what the compiler says about it. TestWhatCompiles compares; it is no part of any program.
package compile

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*corev1.ConfigMap]

func handle(context.Context, *Change) error { return nil }

func admit(context.Context, *kopf.Admission[*corev1.ConfigMap]) error { return nil }

func watch(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) error { return nil }

func listen(context.Context, *kopf.ChildEvent[*corev1.ConfigMap, *corev1.Secret]) error { return nil }

func handleRaw(context.Context, *kopf.Change[*unstructured.Unstructured]) error { return nil }

func register(op *kopf.Operator) {
	maps := kopf.For(op, &corev1.ConfigMap{})
	shared := kopf.JoinOptions(kopf.Retries(3), kopf.Timeout(time.Minute))
	mixed := kopf.JoinOptions(kopf.Optional(), kopf.Retries(3), kopf.Sharp())

	// Options of all verbs for changes.
	maps.OnCreate(
		"a", handle, kopf.Retries(3), kopf.Timeout(time.Minute), kopf.Backoff(0),
		kopf.Errors(kopf.ErrorsIgnored), shared,
	)
	maps.OnUpdate("a", handle, kopf.Retries(3), shared)
	maps.OnDelete("a", handle, kopf.Retries(3), kopf.Optional(), kopf.HoldOnFailure(), shared, mixed)
	maps.Daemon("d", nil, kopf.Optional(), kopf.CancelTimeout(time.Minute))
	maps.Timer("t", time.Minute, nil, kopf.Optional(), kopf.Sharp())
	maps.OnResume("a", handle, kopf.Retries(3), kopf.EvenIfDeleted(), shared)
	maps.On("b", []kopf.Reason{kopf.ReasonCreate}, handle, kopf.Retries(3), shared)
	maps.On("b", kopf.CreateUpdateResume(), handle, kopf.Optional(), kopf.EvenIfDeleted(), kopf.OldValue(1))
	maps.OnEvent("e", func(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) error { return nil }, mixed)

	maps.Validate("v", admit, kopf.Operations("CREATE"), kopf.InField("data"), kopf.Persistent(), shared)
	maps.Mutate("m", admit, kopf.Subresource("*"), kopf.SideEffects(), kopf.IgnoreFailures())

	renamed := kopf.FormerIDs("old")
	maps.OnCreate("a", handle, renamed)
	maps.OnUpdate("a", handle, renamed)
	maps.OnDelete("a", handle, renamed)
	maps.OnResume("a", handle, renamed)
	maps.OnField("f", "data", handle, renamed)
	maps.On("b", kopf.CreateUpdateResume(), handle, renamed)
	maps.Daemon("d", nil, renamed)
	maps.Timer("t", time.Minute, nil, renamed)
	maps.OnEvent("e", watch, renamed)        // want "missing method watchEventOption"
	maps.Validate("v", admit, renamed)       // want "missing method admissionOption"
	kopf.OnChild(maps, "c", listen, renamed) // want "missing method childOption"

	// Options of other verbs.
	maps.OnCreate("a", handle, kopf.Optional())                          // want "missing method changeOption"
	maps.OnUpdate("a", handle, kopf.EvenIfDeleted())                     // want "missing method updateOption"
	maps.OnDelete("a", handle, kopf.EvenIfDeleted())                     // want "missing method deleteOption"
	maps.OnResume("a", handle, kopf.Optional())                          // want "missing method resumeOption"
	maps.On("b", []kopf.Reason{kopf.ReasonDelete}, handle, kopf.Sharp()) // want "missing method onOption"

	maps.Validate("v", admit, kopf.Retries(3))            // want "missing method admissionOption"
	maps.OnCreate("a", handle, kopf.Operations("CREATE")) // want "missing method changeOption"

	maps.OnCreate("a", handle, kopf.Settings{}) // want "does not implement kopf.changeOption"

	_ = kopf.New("a.b", kopf.Retries(3))  // want "as kopf.Settings value"
	_ = kopf.JoinOptions(kopf.Settings{}) // want "missing method anyOption"

	// Functions of another type.
	maps.OnCreate("a", handleRaw)                                  // want "cannot use handleRaw"
	kopf.ForResource(op, "v1", "configmaps").OnCreate("a", handle) // want "cannot use handle"
	kopf.ForResource(op, "v1", "configmaps").OnCreate("a", handleRaw)
	maps.OnCreate("a", func(context.Context, *corev1.ConfigMap) error { return nil }) // want "cannot use func"

	// Filters by the argument of the handler.
	changed := kopf.WhenChange(func(context.Context, *Change) bool { return true })
	event := kopf.WhenEvent(func(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) bool { return true })
	request := kopf.WhenRequest(func(context.Context, *kopf.Admission[*corev1.ConfigMap]) bool { return true })
	child := kopf.WhenChild(func(context.Context, *corev1.Secret) bool { return true })
	maps.OnCreate("a", handle, changed)
	maps.OnUpdate("a", handle, changed)
	maps.OnDelete("a", handle, changed)
	maps.OnResume("a", handle, changed)
	maps.OnField("f", "data", handle, changed)
	maps.On("b", kopf.CreateUpdateResume(), handle, changed)
	maps.OnEvent("e", watch, event)
	maps.Validate("v", admit, request)
	kopf.OnChild(maps, "c", listen, child, shared)
	maps.OnEvent("e", watch, changed)                // want "missing method watchEventOption"
	maps.Validate("v", admit, changed)               // want "missing method admissionOption"
	maps.Daemon("d", nil, changed)                   // want "missing method daemonOption"
	kopf.OnChild(maps, "c", listen, changed)         // want "missing method childOption"
	maps.OnCreate("a", handle, event)                // want "missing method changeOption"
	maps.Validate("v", admit, event)                 // want "missing method admissionOption"
	maps.OnCreate("a", handle, request)              // want "missing method changeOption"
	maps.OnEvent("e", watch, request)                // want "missing method watchEventOption"
	maps.OnCreate("a", handle, child)                // want "missing method changeOption"
	maps.OnEvent("e", watch, kopf.Retries(3))        // want "missing method watchEventOption"
	kopf.OnChild(maps, "c", listen, kopf.Optional()) // want "missing method childOption"

	// Prototypes.
	kopf.For(op, corev1.ConfigMap{})      // want "does not satisfy client.Object"
	kopf.For(op, &corev1.ConfigMapList{}) // want "does not satisfy client.Object"
}

type own struct{}

func (own) anyOption()    {}
func (own) changeOption() {}

// The families are sealed: an option of another package has methods of the same names only.
var _ kopf.Option = own{} // want "does not implement kopf.Option"

func results(c *Change) {
	_, _ = kopf.Result[string](c, "a")
	_, _ = kopf.Result(c, "a") // want "cannot infer V"
}

var _, _ = register, results

// Package compile shows what compiles and what does not. In a line that does not, the comment after want is a part of
// what the compiler says about it. TestWhatCompiles compares; it is no part of any program.
package compile

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = facade.Change[*corev1.ConfigMap]

func handle(context.Context, *Change) error { return nil }

func handleRaw(context.Context, *facade.Change[*unstructured.Unstructured]) error { return nil }

func register(op *facade.Operator) {
	maps := facade.For(op, &corev1.ConfigMap{})
	shared := facade.Policy(facade.Retries(3), facade.Timeout(time.Minute))
	narrow := facade.Policy[facade.DeleteOption](facade.Optional(), facade.Retries(3))

	// Options of all verbs for changes.
	maps.OnCreate(
		"a", handle, facade.Retries(3), facade.Timeout(time.Minute), facade.Backoff(0),
		facade.Errors(facade.ErrorsIgnored), shared,
	)
	maps.OnUpdate("a", handle, facade.Retries(3), shared)
	maps.OnDelete("a", handle, facade.Retries(3), facade.Optional(), shared, narrow)
	maps.OnResume("a", handle, facade.Retries(3), facade.EvenIfDeleted(), shared)
	maps.On("b", []facade.Reason{facade.ReasonCreate}, handle, facade.Retries(3), shared)

	// Options of other verbs.
	maps.OnCreate("a", handle, facade.Optional())                                 // want "missing method changeOption"
	maps.OnUpdate("a", handle, facade.EvenIfDeleted())                            // want "missing method updateOption"
	maps.OnDelete("a", handle, facade.EvenIfDeleted())                            // want "missing method deleteOption"
	maps.OnResume("a", handle, facade.Optional())                                 // want "missing method resumeOption"
	maps.On("b", []facade.Reason{facade.ReasonDelete}, handle, facade.Optional()) // want "missing method changeOption"

	maps.OnCreate("a", handle, facade.Workers(3)) // want "does not implement facade.ChangeOption"
	maps.OnCreate("a", handle, narrow)            // want "missing method changeOption"

	_ = facade.New("a.b", facade.Retries(3))                  // want "missing method operatorOption"
	_ = facade.Policy(facade.Retries(3), facade.Optional())   // want "does not match inferred type"
	_ = facade.Policy[facade.ResumeOption](facade.Optional()) // want "missing method resumeOption"

	// Functions of another type.
	maps.OnCreate("a", handleRaw)                                    // want "cannot use handleRaw"
	facade.ForResource(op, "v1", "configmaps").OnCreate("a", handle) // want "cannot use handle"
	facade.ForResource(op, "v1", "configmaps").OnCreate("a", handleRaw)
	maps.OnCreate("a", func(context.Context, *corev1.ConfigMap) error { return nil }) // want "cannot use func"

	// Selections by what happened.
	changed := maps.Labelled("a=b").WhenChange(func(context.Context, *Change) bool { return true })
	changed.Labelled("a").Annotated("b").When(
		func(context.Context, *corev1.ConfigMap) bool { return true },
	).OnCreate("a", handle)
	var _ facade.Selection[*corev1.ConfigMap] = changed // want "cannot use changed"

	// Prototypes.
	facade.For(op, corev1.ConfigMap{})      // want "does not satisfy client.Object"
	facade.For(op, &corev1.ConfigMapList{}) // want "does not satisfy client.Object"
}

type own struct{}

func (own) anyOption()    {}
func (own) changeOption() {}

// The families are sealed: an option of another package has methods of the same names only.
var _ facade.Option = own{} // want "does not implement facade.Option"

func results(c *Change) {
	_, _ = facade.Result[string](c, "a")
	_, _ = facade.Result(c, "a") // want "cannot infer V"
}

var _, _ = register, results

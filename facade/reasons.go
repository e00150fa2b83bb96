package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Reason is why an object is handled. Kopf: Reason.
type Reason string

// The reasons that have handlers.
const (
	// ReasonCreate: the object was never handled to the end. Kopf: Reason.CREATE.
	ReasonCreate Reason = Reason(cause.Create)
	// ReasonUpdate: the object differs from what was handled last, whenever that was. Kopf: Reason.UPDATE.
	ReasonUpdate Reason = Reason(cause.Update)
	// ReasonDelete: the object is being deleted, and the operator's finalizer holds it. Kopf: Reason.DELETE.
	ReasonDelete Reason = Reason(cause.Delete)
	// ReasonResume: nothing changed while the operator was not running. Kopf: Reason.RESUME.
	ReasonResume Reason = Reason(cause.Resume)
)

// fieldChange stands for any reason, where the field has changed.
const fieldChange Reason = "field"

// CreateUpdateResume are the reasons, for On, of a handler that makes the world be as the object says, whatever has
// happened: it is called once for each new state of an object, and once for each object when the operator starts.
// Kopf: @on.create, @on.update and @on.resume on one function.
func CreateUpdateResume() []Reason { return []Reason{ReasonCreate, ReasonUpdate, ReasonResume} }

// On registers one function for several reasons, as the single verbs would do one by one with one id: the handler has
// one record and one result, and is called once where several reasons come together, such as an update found on a
// restart.
//
//	dbs.On("reconcile", kopf.CreateUpdateResume(), reconcile, kopf.Retries(5))
//
// It takes the options that the verb of at least one reason takes; each counts for the reasons whose verbs take it:
// [Optional] for deletions, [EvenIfDeleted] for resuming, [OldValue] for updates. Kopf: several decorators on one
// function.
func (s Selection[T]) On(id string, reasons []Reason, fn ChangeFunc[T], opts ...onOption) {
	own := asOptions(opts)
	own.takes, own.whose = nil, fmt.Sprintf("handlers for %s", listed(reasons))
	for _, reason := range reasons {
		if family, ok := families[reason]; ok {
			own.takes = append(own.takes, family)
		}
	}
	if len(own.takes) == 0 { // that is the mistake, not the options
		own.takes = []reflect.Type{reflect.TypeFor[onOption]()}
	}
	register(s, function[T]{"On", id, fn}, own, reasons...)
}

// verbs are what ids are unique under.
var verbs = map[Reason]string{
	ReasonCreate: "OnCreate", ReasonUpdate: "OnUpdate", ReasonDelete: "OnDelete", ReasonResume: "OnResume",
	fieldChange: "OnField",
}

// families are the options that the verbs take.
var families = map[Reason]reflect.Type{
	ReasonCreate: reflect.TypeFor[changeOption](), ReasonUpdate: reflect.TypeFor[updateOption](),
	ReasonDelete: reflect.TypeFor[deleteOption](), ReasonResume: reflect.TypeFor[resumeOption](),
	fieldChange: reflect.TypeFor[updateOption](),
}

// checkReasons tells what is wrong with the reasons of On.
func checkReasons(reasons []Reason) []error {
	var problems []error
	if len(reasons) == 0 {
		problems = append(problems, errors.New("no reasons are given: give kopf.CreateUpdateResume(), or others"))
	}
	for i, reason := range reasons {
		switch {
		case verbs[reason] == "" || reason == fieldChange:
			problems = append(problems, fmt.Errorf(
				"there are no handlers for the reason %q: take kopf.ReasonCreate, Update, Delete or Resume", reason,
			))
		case slices.Contains(reasons[:i], reason):
			problems = append(problems, fmt.Errorf("the reason %q is given twice", reason))
		}
	}
	return problems
}

func listed(reasons []Reason) string {
	names := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		names = append(names, string(reason))
	}
	return strings.Join(names, ", ")
}

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

// The reasons for [Selection.On].
const (
	// ReasonCreate: it was never handled completely. Kopf: Reason.CREATE.
	ReasonCreate Reason = Reason(cause.Create)
	// ReasonUpdate: it differs from the last-handled configuration. Kopf: Reason.UPDATE.
	ReasonUpdate Reason = Reason(cause.Update)
	// ReasonDelete: it is being deleted, and the finalizer holds it. Kopf: Reason.DELETE.
	ReasonDelete Reason = Reason(cause.Delete)
	// ReasonResume: it did not change while the operator was down. Kopf: Reason.RESUME.
	ReasonResume Reason = Reason(cause.Resume)
)

// fieldChange stands for any reason, where the field has changed.
const fieldChange Reason = "field"

// CreateUpdateResume returns the reasons for a handler that reconciles: each new state, and each object at the start.
// Kopf: @on.create, @on.update, @on.resume.
func CreateUpdateResume() []Reason { return []Reason{ReasonCreate, ReasonUpdate, ReasonResume} }

// On registers a function for several reasons, with one record, one result, and one call if reasons coincide. It takes
// the options of all their verbs. Kopf: several decorators.
//
//	dbs.On("reconcile", kopf.CreateUpdateResume(), reconcile, kopf.Retries(5))
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

// verbs are the verbs of the reasons. Ids are unique for a verb.
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

// checkReasons returns the problems of the reasons of On.
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

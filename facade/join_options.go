package kopf

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// joinedOption is an option of every verb.
type joinedOption interface {
	filterOption
	activityOption
	childOption
}

// JoinOptions joins options to share them. Options beside it override those in it.
//
//	patient := kopf.JoinOptions(kopf.Retries(10), kopf.Timeout(time.Hour))
func JoinOptions(opts ...Option) joinedOption {
	return inFamily[joinedOption](option{name: "JoinOptions", parts: slices.Clone(opts)})
}

// choice is the options given to a verb, and the families that the verb accepts: On accepts several.
type choice struct {
	given []Option
	takes []reflect.Type
	whose string // for messages
}

// asOptions makes options of one family those of any.
func asOptions[O Option](opts []O) choice {
	wide := make([]Option, 0, len(opts))
	for _, opt := range opts {
		wide = append(wide, opt)
	}
	return choice{given: wide, takes: []reflect.Type{reflect.TypeFor[O]()}, whose: "this verb"}
}

// resolve returns the effective options. Those inside of JoinOptions come first, so that the others override them. An
// option twice in one place is an error: the intent is unclear.
func (c choice) resolve() (chosen []option, problems []error) {
	var own []option
	for _, opt := range c.given {
		o, ok := opt.(option)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%T is not an option of package kopf", opt))
		case o.set == nil:
			parts, wrong := choice{o.parts, c.takes, c.whose}.resolve()
			chosen, problems = append(chosen, parts...), append(problems, wrong...)
		case !slices.ContainsFunc(c.takes, o.isFor):
			problems = append(problems, fmt.Errorf("%s is no option of %s: leave it out", o.name, c.whose))
		default:
			own = append(own, o)
		}
	}
	for i, o := range own {
		switch {
		case o.err != nil:
			problems = append(problems, o.err)
		case slices.ContainsFunc(own[:i], func(other option) bool { return other.name == o.name }):
			problems = append(problems, fmt.Errorf("%s is given twice: keep one", o.name))
		default:
			overruled := func(other option) bool { return other.name == o.name }
			chosen = append(slices.DeleteFunc(chosen, overruled), o)
		}
	}
	return chosen, problems
}

// isFor reports whether verbs that accept a family accept the option.
func (o option) isFor(family reflect.Type) bool {
	return o.family != nil && o.family.Implements(family)
}

// applyOptions applies the options to the handler, and returns the effective ones.
func applyOptions(h *handlers.Handler, c choice) (chosen []option, problems []error) {
	chosen, problems = c.resolve()
	for _, o := range chosen {
		o.set(h)
	}
	return chosen, problems
}

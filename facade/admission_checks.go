package facade

import "fmt"

// checkAdmission tells whether the requests for a handler of admission could be taken for those of one before it.
func (op *Operator) checkAdmission(one resolved, before []resolved) error {
	id := one.handler.ID
	for _, other := range before {
		if !other.admits() || other.verb != one.verb || other.handler.ID != id {
			continue
		}
		if one.selector.MayMean(other.selector) {
			return fmt.Errorf("%s(%q): the id is taken by %s at %s; give every handler of a verb its own",
				one.verb, id, other.verb, other.handler.Location)
		}
		if op.given.Persistence.KopfFormats {
			return fmt.Errorf("%s(%q): the id is taken for another kind at %s: with kopf.AsKopf, both would be served "+
				"at one path; choose another one", one.verb, id, other.handler.Location)
		}
	}
	return nil
}

// checkServed refuses handlers that nobody would ever ask.
func (op *Operator) checkServed() error {
	var unserved setupErrors
	for _, r := range op.registrations {
		if r.admits() {
			unserved.add(r.handler.Location, fmt.Errorf(
				"%s(%q): handlers of admission are not served yet, so it would never be called: leave it out",
				r.verb, r.handler.ID))
		}
	}
	return unserved.report(op.name)
}

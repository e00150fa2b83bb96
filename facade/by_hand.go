package kopf

import "errors"

// errByHand is for values of this package's structs that no operator has made: nothing stands behind them.
var errByHand = errors.New("kopf: a Change, Run, Event or Admission that was made by hand does nothing: only an " +
	"operator makes them; in a test, take facadetest.NewChange, NewRun, NewEvent or NewAdmission " +
	"(github.com/kopf-runtime/kopf-runtime/facade/facadetest)")

// byHand tells whether no operator has made it.
func (c *Change[T]) byHand() bool { return c == nil || c.call == nil }

// needCall panics with a message, where nothing can be returned.
func (c *Change[T]) needCall() {
	if c.byHand() {
		panic(errByHand)
	}
}

// needCall panics with a message, where nothing can be returned.
func (a *Admission[T]) needCall() {
	if a == nil || a.call == nil {
		panic(errByHand)
	}
}

package kopf

import "errors"

// errByHand is returned by methods of a Change, Task, WatchEvent or Admission that does not come from an operator.
var errByHand = errors.New("kopf: only an operator creates a Change, Task, WatchEvent or Admission; in a test, use " +
	"NewChange, NewTask, NewWatchEvent or NewAdmission of package facadetest " +
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

package facade

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// HandlerLifecycle decides which of the handlers that are due for an object are called in one go. Kopf:
// kopf.lifecycles.
type HandlerLifecycle = execution.Lifecycle

// The lifecycles, for [Lifecycle].
const (
	// InOrder calls all of them, in the order of registration, each when the one before has returned; the default.
	InOrder = execution.InOrder
	// ASAP calls the one with the fewest attempts, writes its outcome, and looks again. It is Kopf's default: asap.
	ASAP = execution.ASAP
	// OneByOne calls the first one until it is finished. Kopf: one_by_one.
	OneByOne = execution.OneByOne
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = execution.AllAtOnce
	// Randomized calls one at random. Kopf: randomized.
	Randomized = execution.Randomized
	// Shuffled calls all of them in random order. Kopf: shuffled.
	Shuffled = execution.Shuffled
)

// Lifecycle sets which of the handlers that are due are called in one go, sub-handlers included. Default: [InOrder],
// also with [AsKopf]. Those that call one at a time write to the object after each. Kopf: set_default_lifecycle, with
// asap as the default.
func Lifecycle(lifecycle HandlerLifecycle) OperatorOption {
	return setting(func(s *settings) error {
		if !lifecycle.Valid() {
			return fmt.Errorf("Lifecycle(%d): there is no such lifecycle", lifecycle)
		}
		s.lifecycle = lifecycle
		return nil
	})
}

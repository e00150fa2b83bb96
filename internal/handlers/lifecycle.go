package handlers

import (
	"context"
	"time"
)

// Lifecycle decides which due handlers a pass calls, and in which order. The zero value is InOrder. Lifecycles are
// compared with ==. Kopf: kopf.lifecycles.
type Lifecycle struct{ kind *lifecycle }

// lifecycle is behind a pointer, so that two lifecycles by functions, which are not comparable, can be compared.
type lifecycle struct {
	name   string
	single bool
	pick   pickFunc
}

// DueHandler is a handler that can be called now.
type DueHandler struct {
	// ID is the full id of the handler.
	ID string
	// Retry counts the former calls of the handler for the present change.
	Retry int
	// Started is when the handler was first due for the change.
	Started time.Time
}

// pickFunc returns the handlers to call, in the order of the calls. It gets at least one due handler, in the order of
// registration.
type pickFunc = func(ctx context.Context, due []DueHandler) []DueHandler

// The lifecycles.
var (
	// InOrder calls all due handlers in the order of registration. It is the default of this library.
	InOrder = Lifecycle{}
	// ASAP calls the handler with the fewest attempts; the first of several. It is Kopf's default: asap.
	ASAP = Lifecycle{&lifecycle{name: "ASAP", single: true}}
	// OneByOne calls the first one. Kopf: one_by_one.
	OneByOne = Lifecycle{&lifecycle{name: "OneByOne", single: true}}
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = Lifecycle{&lifecycle{name: "AllAtOnce"}}
	// Randomized calls one handler at random. Kopf: randomized.
	Randomized = Lifecycle{&lifecycle{name: "Randomized", single: true}}
	// Shuffled calls all due handlers in random order. Kopf: shuffled.
	Shuffled = Lifecycle{&lifecycle{name: "Shuffled"}}
)

// lifecycleFuncName is the name of all lifecycles by functions.
const lifecycleFuncName = "LifecycleFunc"

// LifecycleFunc returns a lifecycle that calls a function of the user to pick.
func LifecycleFunc(pick pickFunc) Lifecycle {
	return Lifecycle{&lifecycle{name: lifecycleFuncName, single: true, pick: pick}}
}

// IsValid reports whether the lifecycle can pick handlers: the function of LifecycleFunc must not be nil.
func (l Lifecycle) IsValid() bool {
	return l.kind == nil || l.kind.name != lifecycleFuncName || l.kind.pick != nil
}

// PicksOne reports whether handlers that become due during a pass wait for the next one. That is so if the lifecycle
// picks at most one handler, or if a function of the user picks.
func (l Lifecycle) PicksOne() bool { return l.kind != nil && l.kind.single }

// PickFunc returns the function of the user; nil for the other lifecycles.
func (l Lifecycle) PickFunc() func(ctx context.Context, due []DueHandler) []DueHandler {
	if l.kind == nil {
		return nil
	}
	return l.kind.pick
}

// Equal reports whether both are the same lifecycle.
func (l Lifecycle) Equal(other Lifecycle) bool { return l == other }

// String returns the name of the lifecycle.
func (l Lifecycle) String() string {
	if l.kind == nil {
		return "InOrder"
	}
	return l.kind.name
}

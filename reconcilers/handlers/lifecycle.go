package handlers

import (
	"context"
	"time"
)

// Lifecycle decides which of the handlers that are due are called in one pass, and in which order. The zero value is
// InOrder. Lifecycles are compared with ==. Kopf: kopf.lifecycles.
type Lifecycle struct{ kind *lifecycle }

type lifecycle struct {
	name   string
	single bool
	pick   pickFunc
}

// DueHandler is a handler that may be called now.
type DueHandler struct {
	// ID is the full id of the handler.
	ID string
	// Retry counts the calls of the handler for the present change so far.
	Retry int
	// Started is when the handler was first due for the change.
	Started time.Time
}

// pickFunc returns those of the handlers that are called, in the order of the calls. It gets all handlers that are due,
// in the order of registration: one at least.
type pickFunc = func(ctx context.Context, due []DueHandler) []DueHandler

// The lifecycles.
var (
	// InOrder calls all of them, in the order of registration. It is the default here.
	InOrder = Lifecycle{}
	// ASAP calls one: that with the fewest attempts, the first of these. It is Kopf's default: asap.
	ASAP = Lifecycle{&lifecycle{name: "ASAP", single: true}}
	// OneByOne calls the first one. Kopf: one_by_one.
	OneByOne = Lifecycle{&lifecycle{name: "OneByOne", single: true}}
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce = Lifecycle{&lifecycle{name: "AllAtOnce"}}
	// Randomized calls one at random. Kopf: randomized.
	Randomized = Lifecycle{&lifecycle{name: "Randomized", single: true}}
	// Shuffled calls all of them in random order. Kopf: shuffled.
	Shuffled = Lifecycle{&lifecycle{name: "Shuffled"}}
)

const byFunction = "LifecycleFunc"

// LifecycleFunc is a lifecycle by a function of the user.
func LifecycleFunc(pick pickFunc) Lifecycle {
	return Lifecycle{&lifecycle{name: byFunction, single: true, pick: pick}}
}

// Valid reports whether the lifecycle can pick: one by a function may lack the function.
func (l Lifecycle) Valid() bool {
	return l.kind == nil || l.kind.name != byFunction || l.kind.pick != nil
}

// Single reports whether handlers that become due in the course of a pass wait for the next one: the lifecycle picks
// one handler at most, or a function of the user decides.
func (l Lifecycle) Single() bool { return l.kind != nil && l.kind.single }

// PickFunc is the function of the user; nil for the others.
func (l Lifecycle) PickFunc() func(ctx context.Context, due []DueHandler) []DueHandler {
	if l.kind == nil {
		return nil
	}
	return l.kind.pick
}

// Equal reports whether both are the same lifecycle.
func (l Lifecycle) Equal(other Lifecycle) bool { return l == other }

// String is the name of the lifecycle.
func (l Lifecycle) String() string {
	if l.kind == nil {
		return "InOrder"
	}
	return l.kind.name
}

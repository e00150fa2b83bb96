package execution

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Lifecycle decides which of the handlers that are due are called in one pass, and in which order. The zero value is
// InOrder. Kopf: kopf.lifecycles.
type Lifecycle int

// The lifecycles.
const (
	// InOrder calls all of them, in the order of registration. It is the default here.
	InOrder Lifecycle = iota
	// ASAP calls one: that with the fewest attempts, the first of these. It is Kopf's default: asap.
	ASAP
	// OneByOne calls the first one. Kopf: one_by_one.
	OneByOne
	// AllAtOnce is InOrder under Kopf's name. Kopf: all_at_once.
	AllAtOnce
	// Randomized calls one at random. Kopf: randomized.
	Randomized
	// Shuffled calls all of them in random order. Kopf: shuffled.
	Shuffled
)

// Valid tells whether there is such a lifecycle.
func (l Lifecycle) Valid() bool { return l >= InOrder && l <= Shuffled }

// Pick chooses from the accounts of the handlers that are due, given in the order of registration. They are not
// modified.
func (l Lifecycle) Pick(due []*HandlerState) []*HandlerState {
	if len(due) == 0 {
		return nil
	}
	switch l {
	case ASAP:
		// The first of equals, as registered.
		fewest := func(a, b *HandlerState) int { return cmp.Compare(a.Retries, b.Retries) }
		return []*HandlerState{slices.MinFunc(due, fewest)}
	case OneByOne:
		return due[:1:1]
	case Randomized:
		return []*HandlerState{due[rand.IntN(len(due))]}
	case Shuffled:
		shuffled := slices.Clone(due)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return shuffled
	default:
		return due
	}
}

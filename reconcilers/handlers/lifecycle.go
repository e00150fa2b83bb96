package handlers

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

// Single tells whether it picks one handler at most.
func (l Lifecycle) Single() bool { return l == ASAP || l == OneByOne || l == Randomized }

package queue

import "github.com/kopf-runtime/kopf-runtime/reconcilers/source"

// class is what a request is for, by its priority. The more urgent ones come first.
type class int

const (
	tick class = iota
	deletion
	change
	retry
	resume
	classes
)

// shares are how many turns each class gets in a round, if it has that much to do. A round is over when nobody who
// waits has turns left. So the urgent ones go first, but the others always go on: with an age at which they go first
// instead, a long listing that waits since the start would come before every edit of now.
var shares = [classes]int{tick: 16, deletion: 8, change: 4, retry: 2, resume: 1}

func classOf(r source.Request, priority int) class {
	switch {
	case r.Handler != "":
		return tick
	case priority >= source.PriorityDeletion:
		return deletion
	case priority >= source.PriorityChange:
		return change
	case priority >= source.PriorityRetry:
		return retry
	default:
		return resume
	}
}

func (c class) priority() int {
	return [classes]int{
		source.PriorityTimer, source.PriorityDeletion, source.PriorityChange, source.PriorityRetry,
		source.PriorityResume,
	}[c]
}

// side is one of the two who cannot take each other's last places.
type side int

const (
	others side = iota
	deletions
	sides
)

func (c class) side() side {
	if c == deletion {
		return deletions
	}
	return others
}

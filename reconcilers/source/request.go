package source

import "k8s.io/apimachinery/pkg/types"

// Request asks for one look at one object: at its changes, or, with a handler's id, at a due tick of its timer.
type Request struct {
	types.NamespacedName
	// Handler is the id of the timer; empty means that the object changed.
	Handler string
}

// The priorities of requests. Higher ones come first; within one, the order is that of arrival.
const (
	PriorityDeletion = 200
	PriorityChange   = 100
	PriorityRetry    = 0
	PriorityResume   = -100
	PriorityTimer    = -200
)

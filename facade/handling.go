package kopf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Handling is one call of a handler about one object, of whatever verb: what [Change], [Task] and [WatchEvent] have in
// common. Functions that several handlers share take this, or the part of it that they need:
//
//	func rename[T client.Object](h kopf.Patcher[T], name string)
//
// Whoever calls it has nothing to spell: rename(c, "other"). Beside these methods, [Result] takes any of the three.
//
//nolint:interfacebloat // it is what the small ones are composed to
type Handling[T client.Object] interface {
	Subject[T]
	Patcher[T]
	Results
	EventPoster
	Reporter
	Adopter
	// Condition sets a condition in the status of the object: see [Change.Condition].
	Condition(conditionType string, status metav1.ConditionStatus, reason, message string)
}

// Subject is the object that a handler is called for.
type Subject[T client.Object] interface {
	// Current is the object as the handler sees it: c.Object of a [Change] or an [WatchEvent], the newest state in a [Task].
	Current() T
	// Latest is the newest state that is known by now, as a copy: see [Change.Latest].
	Latest() T
	// Resource is what the object is one of: see [Change.Resource].
	Resource() Resource
}

// Patcher changes the object in the cluster.
type Patcher[T client.Object] interface {
	// Patch changes the object: see [Change.Patch].
	Patch(change func(object T))
	// TryPatch is Patch with a function that may fail: see [Change.TryPatch].
	TryPatch(change func(object T) error)
}

// Results are what handlers leave in the status of their object, under their ids.
type Results interface {
	// SetResult sets what is written to status.<id> if the handler succeeds: see [Change.SetResult].
	SetResult(value any)
	// RawResult is what a handler has left there, as JSON values: see [Result], which decodes it.
	RawResult(id string) (any, error)
}

// EventPoster posts Kubernetes events about the object.
type EventPoster interface {
	// Info posts one of the type Normal: see [Change.Event].
	Info(reason, message string)
	// Warn posts one of the type Warning.
	Warn(reason, message string)
	// Event posts one of any type.
	Event(eventType, reason, message string)
}

// Reporter posts Kubernetes events about errors, and about other objects.
type Reporter interface {
	// Exception posts one of the type Error: see [Change.Exception].
	Exception(reason, message string, err error)
	// About is for events about others: see [Change.EventRecorderFor].
	EventRecorderFor(objects ...any) EventRecorder
}

// Adopter makes children of the object.
type Adopter interface {
	// Adopt makes objects its children before they are created: see [Change.Adopt].
	Adopt(children ...any) error
}

var (
	_ Handling[*Unstructured] = (*Change[*Unstructured])(nil)
	_ Handling[*Unstructured] = (*Task[*Unstructured])(nil)
	_ Handling[*Unstructured] = (*WatchEvent[*Unstructured])(nil)
)

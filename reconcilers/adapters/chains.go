package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// chains lists the adapters of each family, the first of them outermost: it gets an attempt first, and sees last what
// came of it. New gives a handler those of them that it needs. The adapters before Answer decide whether the function
// is called; those after it surround the call.
//
// Each adapter of a cause has a file of its name, as have Filters, Dependencies, Limits (with Deadline), Logging and
// Request. Progress and Answer are in selection.go, Occupation, Metrics and Labels in metrics.go, the rest in
// outcome.go. A new adapter gets its lines here. A new family gets a chain.
var chains = map[handlers.Family]chain{
	handlers.Changing: {
		call,
		[]listed{
			{"Created", created},
			{"Updated", updated},
			{"Deleted", deleted},
			{"Resumed", resumed},
			{"AnyReason", anyReason},
			{"FieldChanged", fieldChanged},
			{"Filters", filters},
			{"Progress", progress},
			{"Answer", answer},
			{"Observation", observation},
			{"Occupation", occupation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Dependencies", dependencies},
			{"Limits", limits},
			{"Deadline", deadline},
			{"ErrorClasses", around(ErrorClasses)},
			{"SubHandlers", around(SubHandlers)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Watching: {
		call,
		[]listed{
			{"Filters", filters},
			{"Answer", answer},
			{"Observation", observation},
			{"Occupation", occupation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Limits", limits},
			{"Deadline", deadline},
			{"ErrorClasses", around(ErrorClasses)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Spawning: {
		call,
		[]listed{
			{"Filters", filters},
			{"Progress", progress},
			{"Answer", answer},
			{"Observation", observation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Limits", limits},
			{"Deadline", deadline},
			{"ErrorClasses", around(ErrorClasses)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Owning: {call, []listed{{"Filters", filters}, {"Answer", answer}}},
	handlers.Tending: {
		call,
		[]listed{
			{"Filters", filters},
			{"Progress", progress},
			{"Answer", answer},
			{"Observation", observation},
			{"Occupation", occupation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Limits", limits},
			{"Deadline", deadline},
			{"ErrorClasses", around(ErrorClasses)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Indexing: { // on the goroutine of the informer: it has no deadline, and is not measured
		index,
		[]listed{
			{"Filters", filters},
			{"Progress", progress},
			{"Answer", answer},
			{"Limits", limits},
			{"PlainErrors", around(plainErrors)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Acting: { // it has no object: there is nothing to select it by
		act,
		[]listed{
			{"Progress", progress},
			{"Answer", answer},
			{"Observation", observation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Limits", limits},
			{"Deadline", deadline},
			{"ErrorClasses", around(ErrorClasses)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Admitting: { // one request, one answer: there are no retries, and the API server has its own deadline
		call,
		[]listed{
			{"Request", around(request)},
			{"Filters", filters},
			{"Answer", answer},
			{"Observation", observation},
			{"Logging", around(Logging)},
			{"Metrics", measured},
			{"Verdict", around(verdict)},
			{"Recovery", around(Recovery)},
			{"Labels", labels},
		},
	},
	handlers.Reporting: {call, []listed{{"Filters", filters}, {"Answer", answer}}}, // it is only asked
}

// chain is the adapters of one family around the innermost step.
type chain struct {
	innermost Func
	adapters  []listed
}

// listed is one adapter under its name. For a handler that does not need it, make gives nil.
type listed struct {
	name string
	make func(h *Handler) Adapter
}

// around lists an adapter that every handler needs.
func around(a Adapter) func(*Handler) Adapter { return func(*Handler) Adapter { return a } }

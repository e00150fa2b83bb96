package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// chains lists the adapters of each family, outermost first: the first one gets an attempt first and sees its outcome
// last. New gives a handler only the adapters that it needs. The adapters before Answer decide whether the function is
// called; those after it surround the call.
//
// The order matters. Cheap decisions on the cause come before Filters, which may be expensive. Logging and Metrics are
// outside of Limits and ErrorClasses, because they report the final outcome. Recovery is inside of ErrorClasses, which
// classifies a panic like any other error.
//
// Each adapter of a cause has a file of its own, as do Filters, Dependencies, Limits (with Deadline), Logging,
// Observation and Request. Progress and Answer are in selection.go; Occupation, Metrics and Labels in metrics.go; the
// rest in outcome.go. To add an adapter, add its lines here; to add a family, add a chain.
var chains = map[handlers.Family]chain{
	// Handlers of creations, updates, deletions, resumes and fields, and their sub-handlers. Each of them needs exactly
	// one adapter for its reason.
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
	// Event handlers are called once for each event: they do not have progress, and no reason.
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
	// Daemons and timers run outside of passes and do not hold slots. Their progress is in memory.
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
	// Only asked, never called: they select the children that are watched for their owners.
	handlers.Owning: {call, []listed{{"Filters", filters}, {"Answer", answer}}},
	// Handlers of the events of children. They have retries, and hold a slot like change handlers.
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
	handlers.Indexing: { // runs on the informer's goroutine: it has no deadline and is not measured
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
	handlers.Acting: { // there is no object that could be filtered
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
	handlers.Admitting: { // one request, one answer: no retries, and the API server sets the deadline
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
	handlers.Reporting: {call, []listed{{"Filters", filters}, {"Answer", answer}}}, // only asked, never called
}

// chain is the list of adapters of one family, around the innermost step.
type chain struct {
	innermost Func
	adapters  []listed
}

// listed is one adapter and its name, which [execution.Stop] shows. For a handler that does not need it, make returns
// nil.
type listed struct {
	name string
	make func(h *Handler) Adapter
}

// around lists an adapter that every handler of the family needs.
func around(a Adapter) func(*Handler) Adapter { return func(*Handler) Adapter { return a } }

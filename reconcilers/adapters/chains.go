package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// chains lists the adapters of each family, outermost first: the first one gets an attempt first and sees its outcome
// last. New gives a handler only the adapters that it needs. The adapters before Answer decide whether the function is
// called; those after it surround the call.
//
// The order matters. Cheap decisions on the cause come before Filters, which may be expensive. Logging and Metrics are
// outside of Limits and ErrorClasses, because they report the final outcome. Recovery is inside of ErrorClasses, which
// classifies a panic like any other error.
//
// The adapters of causes are in reasons.go and field_changed.go. Filters, Dependencies, Limits (with Deadline),
// Logging, Observation and Request have files of their own. Progress and Answer are in selection.go; Occupation,
// Metrics and Labels in metrics.go; the rest in outcome.go. To add an adapter, add its lines here; to add a family, add
// a chain.
var chains = map[handlers.Family]chain{
	// Handlers of creations, updates, deletions, resumes and fields, and their sub-handlers. Each of them needs exactly
	// one adapter for its reason.
	handlers.Changing: {
		call,
		[]namedAdapter{
			// The object was never handled completely: it has no last-handled essence.
			reasonAdapter("Created", cause.Create, (*cause.Cause).IsCreated),
			// The essence differs from the last-handled one.
			reasonAdapter("Updated", cause.Update, (*cause.Cause).IsUpdated),
			// The object is being deleted, and has our finalizer.
			reasonAdapter("Deleted", cause.Delete, (*cause.Cause).IsDeleted),
			{"Resumed", resumedAdapter},
			{"AnyReason", anyReasonAdapter},
			{"FieldChanged", fieldChangedAdapter},
			{"Filters", filtersAdapter},
			{"Progress", progressAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Occupation", occupationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Dependencies", dependenciesAdapter},
			{"Limits", limitsAdapter},
			{"Deadline", deadlineAdapter},
			{"ErrorClasses", alwaysNeeded(ErrorClasses)},
			{"SubHandlers", alwaysNeeded(SubHandlers)},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	// Event handlers are called once for each event: they do not have progress, and no reason.
	handlers.Watching: {
		call,
		[]namedAdapter{
			{"Filters", filtersAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Occupation", occupationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Limits", limitsAdapter},
			{"Deadline", deadlineAdapter},
			{"ErrorClasses", alwaysNeeded(ErrorClasses)},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	// Daemons and timers run outside of passes and do not hold slots. Their progress is in memory.
	handlers.Background: {
		call,
		[]namedAdapter{
			{"Filters", filtersAdapter},
			{"Progress", progressAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Limits", limitsAdapter},
			{"Deadline", deadlineAdapter},
			{"ErrorClasses", alwaysNeeded(ErrorClasses)},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	// Only asked, never called: they select the children that are watched for their owners.
	handlers.Parent: {call, []namedAdapter{{"Filters", filtersAdapter}, {"Answer", answerAdapter}}},
	// Handlers of the events of children. They have retries, and hold a slot like change handlers.
	handlers.Child: {
		call,
		[]namedAdapter{
			{"Filters", filtersAdapter},
			{"Progress", progressAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Occupation", occupationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Limits", limitsAdapter},
			{"Deadline", deadlineAdapter},
			{"ErrorClasses", alwaysNeeded(ErrorClasses)},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	handlers.Indexing: { // runs on the informer's goroutine: it has no deadline and is not measured
		callIndex,
		[]namedAdapter{
			{"Filters", filtersAdapter},
			{"Progress", progressAdapter},
			{"Answer", answerAdapter},
			{"Limits", limitsAdapter},
			{"PlainErrors", alwaysNeeded(judgedBy(execution.Limits.OutcomeOf))},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	handlers.Activity: { // there is no object that could be filtered
		callActivity,
		[]namedAdapter{
			{"Progress", progressAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Limits", limitsAdapter},
			{"Deadline", deadlineAdapter},
			{"ErrorClasses", alwaysNeeded(ErrorClasses)},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	handlers.Admitting: { // one request, one answer: no retries, and the API server sets the deadline
		call,
		[]namedAdapter{
			{"Request", alwaysNeeded(requestAdapter)},
			{"Filters", filtersAdapter},
			{"Answer", answerAdapter},
			{"Observation", observationAdapter},
			{"Logging", alwaysNeeded(Logging)},
			{"Metrics", metricsAdapter},
			{"Verdict", alwaysNeeded(judgedBy(anyErrorDenies))},
			{"Recovery", alwaysNeeded(Recovery)},
			{"Labels", labelsAdapter},
		},
	},
	handlers.Condition: {call, []namedAdapter{{"Filters", filtersAdapter}, {"Answer", answerAdapter}}},
	// only asked, never called
}

// chain is the list of adapters of one family, around the innermost step.
type chain struct {
	innermost Func
	adapters  []namedAdapter
}

// namedAdapter is one adapter and its name, which [execution.Stop] shows. For a handler that does not need it, make
// returns nil.
type namedAdapter struct {
	name string
	make func(h *HandlerChain) Adapter
}

// alwaysNeeded lists an adapter that every handler of the family needs.
func alwaysNeeded(a Adapter) func(*HandlerChain) Adapter {
	return func(*HandlerChain) Adapter { return a }
}

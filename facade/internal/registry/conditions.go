package registry

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// reportsID is in lines of the log that list handlers.
const reportsID = "conditions"

// NewReporter returns a handler that is never called. It selects the objects that have conditions.
func NewReporter(where string, filters []handlers.Filter) *handlers.Handler {
	return &handlers.Handler{
		ID: reportsID, Family: handlers.Reporting, Filters: filters, Function: reportsID, Location: where,
	}
}

// reporters returns those by the settings: an object has conditions if one of its handlers selects it.
func reporters(all []ResolvedEntry) (more []ResolvedEntry) {
	whole := map[discovery.Selector]bool{}
	for _, one := range all {
		family := one.Handler.Family
		counts := family == handlers.Changing || family == handlers.Spawning || family == handlers.Watching
		if !counts || whole[one.Selector] {
			continue
		}
		whole[one.Selector] = len(one.Handler.Filters) == 0
		h := NewReporter(one.Handler.Location, one.Handler.Filters)
		more = append(more, ResolvedEntry{HandlerEntry{Kind: one.Kind, Verb: "Conditions", Handler: h}, one.Selector})
	}
	return more
}

// reserveConditions reserves the types of the conditions, so that handlers of the same objects cannot set them.
func reserveConditions(all []ResolvedEntry, types []string) {
	for _, one := range all {
		reported := func(other ResolvedEntry) bool {
			return Reports(other.Handler) && one.Selector.MayMean(other.Selector)
		}
		if one.Handler.Reserved = nil; slices.ContainsFunc(all, reported) {
			one.Handler.Reserved = types
		}
	}
}

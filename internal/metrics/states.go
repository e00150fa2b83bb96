package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// StateFamily is a family whose values are read when metrics are collected.
type StateFamily int

// The states, with the labels that they have in addition to that of the operator.
const (
	// Paused is 1 during a pause, and 0 otherwise.
	Paused StateFamily = iota
	// PausedNamespaces is the number of namespaces that are paused while the operator itself is not.
	PausedNamespaces
	// Retries is the number of handlers that wait for their next attempt: kind, handler.
	Retries
	// Unhandled is the number of objects with an unfinished change: kind.
	Unhandled
	// OldestUnhandled is the age of the oldest unfinished change, in seconds: kind.
	OldestUnhandled
	// Daemons and Timers are the numbers of background handlers of all objects, by their activity: kind, handler,
	// state.
	Daemons
	Timers
	// IndexKeys is the number of keys of an index, IndexedObjects the number of objects with values in it: index.
	IndexKeys
	IndexedObjects
	// RememberedObjects is the number of objects with state in memory: kind.
	RememberedObjects
	// PausedObjects is the number of objects that are paused by their annotations, and FailedObjects that of objects
	// whose last change has failed permanently: kind.
	PausedObjects
	FailedObjects
	// WatchAge is the time since the last event or bookmark of a watch, in seconds: kind.
	WatchAge
	// RangesHeld is the number of ranges of objects that the process holds, and RangeMoves how many it has acquired,
	// left and lost: move. They and the next three exist only if replicas share the objects.
	RangesHeld
	RangeMoves
	// UnownedRanges is the number of ranges without an owner, OldestUnownedRange the longest time since one had an
	// owner, in seconds, and Replicas the number of live processes. All are as this process sees them.
	UnownedRanges
	OldestUnownedRange
	Replicas
)

// Emit adds one value. Values of the same labels are merged, because the scopes of a kind are shown as one: the result
// is the highest of ages, and the sum of counts.
type Emit func(s StateFamily, value float64, labels ...string)

// StateSource emits the current values. Any goroutine may call it. It should be fast, because the collection waits for
// it.
type StateSource func(emit Emit)

// familyDescription describes a family. If isAge is true, equal labels are merged by the highest value.
type familyDescription struct {
	name, help string
	labels     []string
	isAge      bool
	isCounter  bool // otherwise, it is a gauge
}

// familyDescriptions has the family of each state. Collect and Describe index it by [StateFamily].
var familyDescriptions = [...]familyDescription{
	Paused:           {name: "kopf_paused", help: "Whether the operator is paused: 1 if it is."},
	PausedNamespaces: {name: "kopf_paused_namespaces", help: "Namespaces in which the operator is paused."},
	Retries: {name: "kopf_retries_waiting", help: "Handlers that wait for the time of their next attempt.",
		labels: []string{"kind", "handler"}},
	Unhandled: {name: "kopf_unhandled_changes", help: "Objects with a change that is not handled yet.",
		labels: []string{"kind"}},
	OldestUnhandled: {name: "kopf_oldest_unhandled_change_age_seconds",
		help:   "Age of the oldest change that is not handled yet; 0 if there is none.",
		labels: []string{"kind"}, isAge: true},
	Daemons: {name: "kopf_daemons", help: "Daemons of all objects, by state.",
		labels: []string{"kind", "handler", "state"}},
	Timers: {name: "kopf_timers", help: "Timers of all objects, by state.",
		labels: []string{"kind", "handler", "state"}},
	IndexKeys:      {name: "kopf_index_keys", help: "Keys of an index.", labels: []string{"index"}},
	IndexedObjects: {name: "kopf_index_objects", help: "Objects with values in an index.", labels: []string{"index"}},
	RememberedObjects: {name: "kopf_objects_remembered", help: "Objects with state in memory.",
		labels: []string{"kind"}},
	PausedObjects: {name: "kopf_objects_paused", help: "Objects that are paused by their annotations.",
		labels: []string{"kind"}},
	FailedObjects: {name: "kopf_objects_failed", help: "Objects with a handler that has failed permanently in their " +
		"last change.", labels: []string{"kind"}},
	WatchAge: {name: "kopf_watch_age_seconds",
		help:   "Time since the last event or bookmark of the watches of a kind, of the quietest of them.",
		labels: []string{"kind"}, isAge: true},
	RangesHeld: {name: "kopf_ranges_held", help: "Ranges of objects that this process holds."},
	RangeMoves: {name: "kopf_range_moves_total", help: "Ranges that this process has acquired, left or lost.",
		labels: []string{"move"}, isCounter: true},
	UnownedRanges: {name: "kopf_ranges_unowned", help: "Ranges of objects that no process holds."},
	OldestUnownedRange: {name: "kopf_oldest_unowned_range_age_seconds",
		help: "Longest time since a range had an owner; 0 if all have one.", isAge: true},
	Replicas: {name: "kopf_replicas", help: "Live processes that share the objects of the operator."},
}

// states collects the states of all operators of a registry. The registry keeps one instance for the process, while
// operators come and go.
type states struct {
	descriptions [len(familyDescriptions)]*prometheus.Desc

	mu      sync.Mutex
	sources map[*OperatorMetrics]StateSource
}

var _ prometheus.Collector = (*states)(nil)

// newStates returns a collector without sources.
func newStates() *states {
	s := &states{sources: map[*OperatorMetrics]StateSource{}}
	for state, one := range familyDescriptions {
		s.descriptions[state] = prometheus.NewDesc(one.name, one.help, withOperatorLabel(one.labels), nil)
	}
	return s
}

// addSource adds the source of an operator, or replaces it.
func (s *states) addSource(o *OperatorMetrics, source StateSource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[o] = source
}

// removeSource removes the source of an operator. A collection that is running may still call it.
func (s *states) removeSource(o *OperatorMetrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sources, o)
}

// Describe sends the descriptions of all families, with or without values. Prometheus needs them to detect collisions.
func (s *states) Describe(into chan<- *prometheus.Desc) {
	for _, description := range s.descriptions {
		into <- description
	}
}

// sample is one value with its labels, before it is merged.
type sample struct {
	state  StateFamily
	labels []string
	value  float64
}

// Collect reads all sources. It does not hold the lock meanwhile, because a source can be slow and operators may begin
// and end.
func (s *states) Collect(into chan<- prometheus.Metric) {
	s.mu.Lock()
	sources := make(map[*OperatorMetrics]StateSource, len(s.sources))
	for o, source := range s.sources {
		sources[o] = source
	}
	s.mu.Unlock()
	samples := map[StateFamily]map[string]*sample{}
	for o, source := range sources {
		source(func(state StateFamily, value float64, labels ...string) {
			mergeSample(samples, sample{state, append([]string{o.name}, labels...), value})
		})
	}
	for state, all := range samples {
		kind := prometheus.GaugeValue
		if familyDescriptions[state].isCounter {
			kind = prometheus.CounterValue
		}
		for _, one := range all {
			into <- prometheus.MustNewConstMetric(s.descriptions[state], kind, one.value, one.labels...)
		}
	}
}

// mergeSample merges the sample with the one that has the same labels.
func mergeSample(samples map[StateFamily]map[string]*sample, one sample) {
	all := samples[one.state]
	if all == nil {
		all = map[string]*sample{}
		samples[one.state] = all
	}
	// The byte 0xff never occurs in UTF-8, so it separates labels unambiguously.
	key := strings.Join(one.labels, "\xff")
	switch known := all[key]; {
	case known == nil:
		all[key] = &one
	case familyDescriptions[one.state].isAge:
		known.value = max(known.value, one.value)
	default:
		known.value += one.value
	}
}

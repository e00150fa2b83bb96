package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// State is a family that is asked for when metrics are collected.
type State int

// The states, with the labels that they have beside that of the operator.
const (
	// Paused is 1 in a pause, and 0 otherwise.
	Paused State = iota
	// PausedNamespaces are the namespaces that are paused while the operator is not.
	PausedNamespaces
	// Retries are the handlers that wait for their next attempt: kind, handler.
	Retries
	// Unhandled are the objects with a change that is not handled yet: kind.
	Unhandled
	// OldestUnhandled is the age of the oldest of them, in seconds: kind.
	OldestUnhandled
	// Daemons and Timers are those of all objects, by what they do now: kind, handler, state.
	Daemons
	Timers
	// IndexKeys are the keys of an index, IndexedObjects the objects that have values in it: index.
	IndexKeys
	IndexedObjects
	// Remembered are the objects that something is kept in memory of: kind.
	Remembered
	// WatchAge is the time since anything was heard by a watch, in seconds: kind.
	WatchAge
)

// Emit takes one value. Of what is emitted more than once with the same labels, ages are the highest, and numbers the
// sum: the scopes of a kind are shown as one.
type Emit func(s State, value float64, labels ...string)

// Source emits what is now. It is asked by any goroutine, and should be quick.
type Source func(emit Emit)

// shown is how a state is shown.
type shown struct {
	name, help string
	labels     []string
	age        bool
}

var byState = [...]shown{
	Paused:           {name: "kopf_paused", help: "Whether the operator is paused: 1 if it is."},
	PausedNamespaces: {name: "kopf_paused_namespaces", help: "Namespaces in which the operator is paused."},
	Retries: {name: "kopf_retries_waiting", help: "Handlers that wait for the time of their next attempt.",
		labels: []string{"kind", "handler"}},
	Unhandled: {name: "kopf_unhandled_changes", help: "Objects with a change that is not handled yet.",
		labels: []string{"kind"}},
	OldestUnhandled: {name: "kopf_oldest_unhandled_change_age_seconds",
		help:   "Age of the oldest change that is not handled yet; 0 if there is none.",
		labels: []string{"kind"}, age: true},
	Daemons: {name: "kopf_daemons", help: "Daemons of all objects, by state.",
		labels: []string{"kind", "handler", "state"}},
	Timers: {name: "kopf_timers", help: "Timers of all objects, by state.",
		labels: []string{"kind", "handler", "state"}},
	IndexKeys:      {name: "kopf_index_keys", help: "Keys of an index.", labels: []string{"index"}},
	IndexedObjects: {name: "kopf_index_objects", help: "Objects with values in an index.", labels: []string{"index"}},
	Remembered: {name: "kopf_objects_remembered", help: "Objects with state in memory.",
		labels: []string{"kind"}},
	WatchAge: {name: "kopf_watch_age_seconds",
		help:   "Time since the last event or bookmark of the watches of a kind, of the quietest of them.",
		labels: []string{"kind"}, age: true},
}

// states collects those of all operators of a registry.
type states struct {
	descriptions [len(byState)]*prometheus.Desc

	mu      sync.Mutex
	sources map[*Operator]Source
}

var _ prometheus.Collector = (*states)(nil)

func newStates() *states {
	s := &states{sources: map[*Operator]Source{}}
	for state, one := range byState {
		s.descriptions[state] = prometheus.NewDesc(one.name, one.help, labeled(one.labels), nil)
	}
	return s
}

func (s *states) add(o *Operator, source Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[o] = source
}

func (s *states) remove(o *Operator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sources, o)
}

// Describe gives all families, be there values or not.
func (s *states) Describe(into chan<- *prometheus.Desc) {
	for _, description := range s.descriptions {
		into <- description
	}
}

// sample is one value to be.
type sample struct {
	state  State
	labels []string
	value  float64
}

// Collect asks all sources. No lock is held meanwhile: operators may begin and end.
func (s *states) Collect(into chan<- prometheus.Metric) {
	s.mu.Lock()
	sources := make(map[*Operator]Source, len(s.sources))
	for o, source := range s.sources {
		sources[o] = source
	}
	s.mu.Unlock()
	samples := map[State]map[string]*sample{}
	for o, source := range sources {
		source(func(state State, value float64, labels ...string) {
			add(samples, sample{state, append([]string{o.name}, labels...), value})
		})
	}
	for state, all := range samples {
		for _, one := range all {
			into <- prometheus.MustNewConstMetric(
				s.descriptions[state], prometheus.GaugeValue, one.value, one.labels...,
			)
		}
	}
}

// add joins the sample with what is there under its labels.
func add(samples map[State]map[string]*sample, one sample) {
	all := samples[one.state]
	if all == nil {
		all = map[string]*sample{}
		samples[one.state] = all
	}
	key := strings.Join(one.labels, "\xff")
	switch known := all[key]; {
	case known == nil:
		all[key] = &one
	case byState[one.state].age:
		known.value = max(known.value, one.value)
	default:
		known.value += one.value
	}
}

package memapi

// eventsGroup is the newer API of Kubernetes events. Both APIs serve the same objects, with different field names.
const eventsGroup = "events.k8s.io"

// eventFields maps field names of the newer API to those of the core API. Events are stored in the form of the core
// API.
var eventFields = map[string]string{
	"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
	"deprecatedSource": "source", "deprecatedFirstTimestamp": "firstTimestamp",
	"deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
}

// isNewEvent reports whether the request uses the newer API of events.
func (t target) isNewEvent() bool { return t.Group == eventsGroup && t.Plural == "events" }

// renameEvent converts an event in place: to the stored form if stored is set, else to the newer API.
func renameEvent(object map[string]any, stored bool) {
	for name, older := range eventFields {
		from, to := older, name
		if stored {
			from, to = name, older
		}
		if value, ok := object[from]; ok {
			delete(object, from)
			object[to] = value
		}
	}
}

package memapi

// eventsGroup is the newer API of Kubernetes events. Its objects are those of the older one in the core API, under
// other names of their fields.
const eventsGroup = "events.k8s.io"

// eventFields are the names that the newer API has for fields of the older one, in which events are stored.
var eventFields = map[string]string{
	"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
	"deprecatedSource": "source", "deprecatedFirstTimestamp": "firstTimestamp",
	"deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
}

func (t target) isNewEvent() bool { return t.Group == eventsGroup && t.Plural == "events" }

// renameEvent brings an event into the form of the newer API, or back into that of the storage.
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

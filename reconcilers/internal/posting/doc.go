// Not part of the public API.
//
// Package posting posts Kubernetes events about objects, in order and each by itself, as Kopf does. A [QueuePoster]
// queues events and posts them in the background; a [LinePoster] also posts the log lines of handlers.
//
// The manager's event recorder cannot be used, because it aggregates different messages and accepts only the types
// Normal and Warning. Posting never delays or fails a handler: an event that cannot be posted is logged and dropped,
// not retried. Handlers post through handlers.Poster, and package reconcilers adds the Poster to the manager.
package posting

package loops

import (
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// maxLoggedFields limits the number of fields in one log line.
const maxLoggedFields = 8

// LogLoop warns about a loop, with the handlers that keep it running and the fields that they change.
func LogLoop(log logr.Logger, handlers []string, changed []diff.Path, delay time.Duration) {
	var fields []string
	for _, path := range changed {
		if field := path.String(); len(fields) < maxLoggedFields && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	logging.Warn(log, "Handlers change the object each time that their own change calls them; delaying these calls, "+
		"longer each time", "handlers", handlers, "fields", fields, "calls", Threshold, "within", Window.String(),
		"delay", delay.String())
}

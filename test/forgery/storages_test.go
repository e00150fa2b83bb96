package forgery_test

import (
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const own = "forgery.example.org"

// memory is one way to remember.
type memory struct {
	name   string
	prefix string
	// inStatus says that who may write the status may write memory.
	inStatus bool
	settings kopf.Settings
	redacted bool
}

// keeping are settings of the memory alone.
func keeping(persistence kopf.PersistenceSettings) kopf.Settings {
	return kopf.Settings{Persistence: persistence}
}

// memories are all that there are.
var memories = []memory{
	{name: "own", prefix: own},
	{name: "kopf", prefix: "kopf.zalando.org", settings: kopf.AsKopf()},
	{name: "status", prefix: own, inStatus: true, settings: keeping(kopf.PersistenceSettings{
		DiffbaseStorage: diffbase.Status{}, ProgressStorage: progress.Status{},
	})},
	{name: "multi", prefix: own, inStatus: true, settings: keeping(kopf.PersistenceSettings{
		DiffbaseStorage: diffbase.Multi{diffbase.Annotations{Prefix: own}, diffbase.Status{}},
		ProgressStorage: progress.Multi{progress.Annotations{Prefix: own}, progress.Status{}},
	})},
	{name: "digests", prefix: own, redacted: true, settings: keeping(kopf.PersistenceSettings{
		DigestKey: []byte("secret"),
	})},
	{name: "asap", prefix: own, settings: kopf.Settings{Execution: kopf.ExecutionSettings{Lifecycle: kopf.ASAP}}},
}

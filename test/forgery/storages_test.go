package forgery_test

import (
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const operatorName = "forgery.example.org"

// storageVariant is one way to remember.
type storageVariant struct {
	name   string
	prefix string
	// inStatus says that who may write the status may write memory.
	inStatus   bool
	settings   kopf.Settings
	isRedacted bool
}

// withPersistence are settings of the memory alone.
func withPersistence(persistence kopf.PersistenceSettings) kopf.Settings {
	return kopf.Settings{Persistence: persistence}
}

// storageVariants are all that there are.
var storageVariants = []storageVariant{
	{name: "own", prefix: operatorName},
	{name: "kopf", prefix: "kopf.zalando.org", settings: kopf.AsKopf()},
	{name: "status", prefix: operatorName, inStatus: true, settings: withPersistence(kopf.PersistenceSettings{
		DiffbaseStorage: diffbase.Status{}, ProgressStorage: progress.Status{},
	})},
	{name: "multi", prefix: operatorName, inStatus: true, settings: withPersistence(kopf.PersistenceSettings{
		DiffbaseStorage: diffbase.Multi{diffbase.Annotations{Prefix: operatorName}, diffbase.Status{}},
		ProgressStorage: progress.Multi{progress.Annotations{Prefix: operatorName}, progress.Status{}},
	})},
	{name: "digests", prefix: operatorName, isRedacted: true, settings: withPersistence(kopf.PersistenceSettings{
		DigestKey: []byte("secret"),
	})},
	{name: "asap", prefix: operatorName,
		settings: kopf.Settings{Execution: kopf.ExecutionSettings{Lifecycle: kopf.ASAP}}},
}

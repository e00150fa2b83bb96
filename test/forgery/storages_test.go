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
	options  []kopf.OperatorOption
	redacted bool
}

// memories are all that there are.
var memories = []memory{
	{name: "own", prefix: own},
	{name: "kopf", prefix: "kopf.zalando.org", options: []kopf.OperatorOption{kopf.AsKopf()}},
	{name: "status", prefix: own, inStatus: true, options: []kopf.OperatorOption{
		kopf.DiffBase(diffbase.Status{}), kopf.Progress(progress.Status{}),
	}},
	{name: "multi", prefix: own, inStatus: true, options: []kopf.OperatorOption{
		kopf.DiffBase(diffbase.Multi{diffbase.Annotations{Prefix: own}, diffbase.Status{}}),
		kopf.Progress(progress.Multi{progress.Annotations{Prefix: own}, progress.Status{}}),
	}},
	{name: "digests", prefix: own, redacted: true, options: []kopf.OperatorOption{
		kopf.DigestKey([]byte("secret")),
	}},
	{name: "asap", prefix: own, options: []kopf.OperatorOption{kopf.Lifecycle(kopf.ASAP)}},
}

package forgery_test

import (
	"github.com/kopf-runtime/kopf-runtime/facade"
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
	options  []facade.OperatorOption
	redacted bool
}

// memories are all that there are.
var memories = []memory{
	{name: "own", prefix: own},
	{name: "kopf", prefix: "kopf.zalando.org", options: []facade.OperatorOption{facade.AsKopf()}},
	{name: "status", prefix: own, inStatus: true, options: []facade.OperatorOption{
		facade.DiffBase(diffbase.Status{}), facade.Progress(progress.Status{}),
	}},
	{name: "multi", prefix: own, inStatus: true, options: []facade.OperatorOption{
		facade.DiffBase(diffbase.Multi{diffbase.Annotations{Prefix: own}, diffbase.Status{}}),
		facade.Progress(progress.Multi{progress.Annotations{Prefix: own}, progress.Status{}}),
	}},
	{name: "digests", prefix: own, redacted: true, options: []facade.OperatorOption{
		facade.DigestKey([]byte("secret")),
	}},
	{name: "asap", prefix: own, options: []facade.OperatorOption{facade.Lifecycle(facade.ASAP)}},
}

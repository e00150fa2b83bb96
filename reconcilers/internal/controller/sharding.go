package controller

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/shards"
)

// handlerGroup has handlers of one kind that share controllers.
type handlerGroup struct {
	handlers     []*adapters.HandlerChain
	ranges       *shards.OwnRanges // nil if the controllers handle all objects
	indexing     bool              // the controllers only fill indices
	hasNoIndices bool              // another group has them
}

// groupHandlers divides the handlers of a kind. Indices need all objects, and so do the parents of children: a parent
// and its child are seldom in the same range. All other handlers are called for the objects of the own ranges only.
func groupHandlers(ranges *shards.OwnRanges, own []*adapters.HandlerChain) (groups []handlerGroup) {
	if ranges == nil {
		return []handlerGroup{{handlers: own}}
	}
	var parents, indices, ranged []*adapters.HandlerChain
	for _, h := range own {
		switch {
		case !h.Description.NeedsAllObjects():
			ranged = append(ranged, h)
		case h.Description.WatchesChildren():
			parents = append(parents, h)
		default:
			indices = append(indices, h)
		}
	}
	for _, group := range []handlerGroup{
		{handlers: parents, hasNoIndices: true},
		{handlers: indices, indexing: true},
		{handlers: ranged, ranges: ranges},
	} {
		if len(group.handlers) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// logForeignObjects logs, once for each kind, that the API server sends the objects of all ranges.
func (c *Controller) logForeignObjects() {
	kind := c.scope.Resource
	if _, logged := c.deps.loggedForeignKinds.LoadOrStore(kind, true); !logged {
		c.log.Info("The API server does not filter by ranges, so this process receives the objects of all ranges for "+
			"each of its own, and drops the others. Its memory stays small, its network traffic does not: use few "+
			"ranges, or enable the feature gate ShardedListAndWatch of the API server", "resource", kind.String())
	}
}

package source

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"
)

// Informed is the source of a controller whose requests come from the events of an informer.
type Informed struct {
	Informer toolscache.SharedIndexInformer
	Events   Events
	// Listed is called when Events had all of the first listing, before any request is served.
	Listed func()

	synced func() bool // whether Events had all of the first listing
}

var _ ctrlsource.TypedSyncingSource[Request] = (*Informed)(nil)

// Start begins with the objects that the informer has by now.
func (s *Informed) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[Request]) error {
	registered, err := s.Informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(item any, isInInitialList bool) {
			if obj, is := item.(Object); is {
				s.Events.Create(ctx, event.TypedCreateEvent[Object]{Object: obj, IsInInitialList: isInInitialList}, q)
			}
		},
		UpdateFunc: func(former, item any) {
			before, _ := former.(Object)
			if after, is := item.(Object); is {
				s.Events.Update(ctx, event.TypedUpdateEvent[Object]{ObjectOld: before, ObjectNew: after}, q)
			}
		},
		DeleteFunc: func(item any) {
			gone, unseen := item.(toolscache.DeletedFinalStateUnknown)
			if unseen {
				item = gone.Obj
			}
			if obj, is := item.(Object); is {
				s.Events.Delete(ctx, event.TypedDeleteEvent[Object]{Object: obj, DeleteStateUnknown: unseen}, q)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("adding the events of a controller to its informer: %w", err)
	}
	s.synced = registered.HasSynced
	return nil
}

// WaitForSync returns when Events had all of the first listing, or when the context ends.
func (s *Informed) WaitForSync(ctx context.Context) error {
	if toolscache.WaitForCacheSync(ctx.Done(), s.synced) && ctx.Err() == nil {
		s.Listed()
	}
	return nil
}

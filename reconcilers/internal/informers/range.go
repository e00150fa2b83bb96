package informers

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// isForeign reports whether the object is outside of the range.
func (l *listing) isForeign(object *compact.CachedObject) bool {
	if l.interest.Range.Contains(object.GetUID()) {
		return false
	}
	if l.interest.OnForeign != nil {
		l.interest.OnForeign()
	}
	return true
}

// rangeWatch is a watch without the objects outside of the range. Their events become bookmarks, so the informer
// resumes from the newest resourceVersion when the watch breaks. Without any event, it would list all objects again.
// Unlike that of watch.Filter, its goroutine ends when the watch is stopped, even if no caller reads the next event.
type rangeWatch struct {
	watch.Interface

	kept    chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

// watchRange starts the goroutine that passes on the events of the range, and all events without an object; of other
// objects only their resourceVersions.
func (l *listing) watchRange(all watch.Interface) watch.Interface {
	w := &rangeWatch{Interface: all, kept: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(w.kept)
		for event := range all.ResultChan() {
			// A bookmark has an object without a uid.
			object, isObject := event.Object.(*compact.CachedObject)
			if isObject && event.Type != watch.Bookmark && l.isForeign(object) {
				if len(object.GetObjectMeta().GetAnnotations()) > 0 {
					continue // it would look like the bookmark at the end of the list
				}
				event.Type = watch.Bookmark
			}
			select {
			case w.kept <- event:
			case <-w.stopped:
				return
			}
		}
	}()
	return w
}

// ResultChan returns the channel of the events.
func (w *rangeWatch) ResultChan() <-chan watch.Event { return w.kept }

// Stop ends the watch. It can be called more than once.
func (w *rangeWatch) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

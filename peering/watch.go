package peering

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// The limits of a watch.
const (
	longestPause   = 30 * time.Second // between attempts to watch
	longestSilence = 70 * time.Second // after which a watch counts as dead
	watchDuration  = 5 * time.Minute
)

// followObject forwards each state of the object to the membership until the context ends. Without a watch, the
// membership still notices changes, but later: each write of its own record returns the object.
func (a *Attendance) followObject(ctx context.Context, at place, m *membership) {
	pause, logged := time.Second, ""
	for ctx.Err() == nil {
		began := time.Now()
		err := a.listAndWatch(ctx, at, m)
		switch {
		case ctx.Err() != nil:
			return
		// A watch that worked for some time is restarted without a long pause.
		case err == nil || time.Since(began) > longestPause:
			pause = time.Second
		default:
			pause = min(2*pause, longestPause)
		}
		// Each error is logged once. A missing object is reported by the membership.
		if err != nil && err.Error() != logged && !apierrors.IsNotFound(err) {
			logged = err.Error()
			logging.Warn(logf.FromContext(ctx), "Cannot watch the peering object; peers are noticed later",
				"peering", a.member.Name, "reason", logged)
		}
		select {
		case <-ctx.Done():
		// The random part spreads the requests of operators after an outage of the API server.
		case <-time.After(pause + rand.N(pause/2)): //nolint:gosec // no secret
		}
	}
}

// listAndWatch lists the object and then watches it once. It returns nil when the watch ends in the usual way.
func (a *Attendance) listAndWatch(ctx context.Context, at place, m *membership) error {
	version, err := a.listObject(ctx, at, m)
	if err != nil {
		return fmt.Errorf("listing the peering object: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := a.client.Watch(ctx, a.newObjectList(at), a.ownObjectOptions(at, metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: wholeSeconds(watchDuration),
	})...)
	if err != nil {
		return fmt.Errorf("watching the peering object: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		// The API server sends bookmarks about once a minute. A longer silence means that the connection is dead, which
		// TCP may not notice.
		case <-time.After(longestSilence):
			return nil
		case event, ok := <-events.ResultChan():
			if !ok {
				return nil
			}
			if err := handleEvent(event, m); err != nil {
				return err
			}
		}
	}
}

// listObject forwards the object to the membership, and returns the version from which to watch. It lists by name
// instead of getting the object, because only a list has a version if the object is missing.
func (a *Attendance) listObject(ctx context.Context, at place, m *membership) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	objects := a.newObjectList(at)
	if err := a.client.List(ctx, objects, a.ownObjectOptions(at, metav1.ListOptions{})...); err != nil {
		return "", err
	}
	if len(objects.Items) == 0 {
		m.ObserveAbsence()
	}
	for i := range objects.Items {
		m.ObserveObject(objects.Items[i].Object)
	}
	return objects.GetResourceVersion(), nil
}

// handleEvent forwards the object of a watch event to the membership.
func handleEvent(event watch.Event, m *membership) error {
	object, ok := event.Object.(*unstructured.Unstructured)
	switch {
	case event.Type == watch.Bookmark:
		return nil
	case event.Type == watch.Error:
		err := apierrors.FromObject(event.Object)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			// The version has expired, which is normal after a pause: the caller lists the object again.
			return nil
		}
		return fmt.Errorf("watching the peering object: %w", err)
	case !ok:
		return errors.New("watching the peering object: an event has no object")
	case event.Type == watch.Deleted:
		m.ObserveAbsence()
	default:
		m.ObserveObject(object.Object)
	}
	return nil
}

// newObjectList returns an empty list for the kind of a place.
func (a *Attendance) newObjectList(at place) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(at.kind.GroupVersion().WithKind(at.kind.Kind + "List"))
	return list
}

// ownObjectOptions returns the options that select the one peering object of a place. The API server filters by name,
// so the operator may have rights for this name only.
func (a *Attendance) ownObjectOptions(at place, raw metav1.ListOptions) []client.ListOption {
	return []client.ListOption{
		&client.ListOptions{Raw: &raw}, client.InNamespace(at.namespace),
		client.MatchingFields{"metadata.name": a.member.Name},
	}
}

// wholeSeconds returns whole seconds in the form of list options.
func wholeSeconds(d time.Duration) *int64 {
	whole := int64(d / time.Second)
	return &whole
}

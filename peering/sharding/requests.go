package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// list returns all Leases as of one time. If the layout does not have its label, it is read before: if it has the same
// version when it is written, the list was complete.
func (s *Sharding) list(ctx context.Context) (view, error) {
	requested := time.Now()
	var layout *coordinationv1.Lease
	if !s.hasLayoutLabel {
		var err error
		if layout, err = s.readLayout(ctx); err != nil {
			return view{}, err
		}
	}
	items, err := listLeases(ctx, s.client, s.core.names)
	if err != nil {
		return view{}, err
	}
	v := s.core.parseView(items)
	v.requested, v.received = requested, time.Now()
	if !s.hasLayoutLabel && !v.isLayoutKnown {
		if v.isLayoutKnown = true; layout != nil {
			v.layout = s.core.parse(layout)
		}
		return v, nil
	}
	s.hasLayoutLabel = v.isLayoutKnown
	return v, nil
}

// readLayout returns the layout, or nil if it does not exist.
func (s *Sharding) readLayout(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	layout, err := s.client.Get(ctx, s.core.Lease.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return layout, err
}

// listLeases returns the Leases with the label. The answer is not older than the request.
func listLeases(
	ctx context.Context, client coordinationv1client.LeaseInterface, n names,
) ([]coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: LeaseSelector(n.layout)})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// execute makes the writes, and passes their results to the core. Several ranges are written at the same time. The
// writes that have not begun at the end are planned again after the next list. It returns whether another replica was
// faster, and another error, if any.
func (s *Sharding) execute(ctx context.Context, batch []write, end time.Time) (conflict bool, failure error) {
	for i := 0; i < len(batch) && (i == 0 || time.Now().Before(end)); i += parallelWrites {
		chunk := batch[i:min(i+parallelWrites, len(batch))]
		results := make([]func(), len(chunk))
		var group sync.WaitGroup
		for j, w := range chunk {
			group.Go(func() {
				sent := time.Now()
				result, err := s.send(ctx, w)
				results[j] = func() {
					s.core.confirm(w, sent, time.Now(), result, err)
					switch {
					case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
						conflict = conflict || w.kind == acquireRange
					case apierrors.IsNotFound(err), w.kind == removeLease:
					default:
						failure = cmp.Or(failure, err)
					}
				}
			})
		}
		group.Wait()
		for _, apply := range results {
			apply()
		}
	}
	return conflict, failure
}

// send makes one write, and returns the Lease in the answer.
func (s *Sharding) send(ctx context.Context, w write) (*lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if w.kind == removeLease {
		return nil, s.client.Delete(ctx, w.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &w.before.object.UID, ResourceVersion: &w.before.object.ResourceVersion,
		}})
	}
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.core.Lease.Namespace, Name: w.name}}
	if w.before != nil {
		object = w.before.object.DeepCopy()
	}
	w.apply(object, s.core.group())
	var err error
	if w.before == nil {
		object, err = s.client.Create(ctx, object, metav1.CreateOptions{})
	} else {
		object, err = s.client.Update(ctx, object, metav1.UpdateOptions{})
	}
	switch {
	case w.before == nil && apierrors.IsAlreadyExists(err):
		return nil, cmp.Or(s.restoreLabel(ctx, w.name), err)
	case err != nil:
		return nil, err
	}
	return s.core.parse(object), s.checkLabel(object)
}

// restoreLabel sets the label of an existing Lease that lists do not show, because another client has changed it.
func (s *Sharding) restoreLabel(ctx context.Context, name string) error {
	object, err := s.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil || object.Labels[groupLabel] == s.core.group() {
		return err
	}
	metav1.SetMetaDataLabel(&object.ObjectMeta, groupLabel, s.core.group())
	if object, err = s.client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return s.checkLabel(object)
}

// checkLabel returns an error if the API server has not stored the label, by which lists find the Lease.
func (s *Sharding) checkLabel(object *coordinationv1.Lease) error {
	if object.Labels[groupLabel] != s.core.group() {
		return fmt.Errorf("the cluster does not keep the label %s of Lease %s: look for a policy or webhook that "+
			"removes or changes it", groupLabel, object.Name)
	}
	return nil
}

// apply sets the written fields of a Lease. The times are for readers: no process compares them with its own clock.
func (w write) apply(object *coordinationv1.Lease, group string) {
	metav1.SetMetaDataLabel(&object.ObjectMeta, groupLabel, group)
	for key, value := range w.annotations {
		if value == "" {
			delete(object.Annotations, key)
			continue
		}
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, key, value)
	}
	now := metav1.NowMicro()
	former := object.Spec
	object.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &w.holder, LeaseDurationSeconds: ptr.To(int32(w.seconds)), //nolint:gosec // at most a minute
		AcquireTime: &now, RenewTime: &now, LeaseTransitions: ptr.To(ptr.Deref(former.LeaseTransitions, 0)),
	}
	if ptr.Deref(former.HolderIdentity, "") == w.holder && former.AcquireTime != nil {
		object.Spec.AcquireTime = former.AcquireTime
	} else {
		*object.Spec.LeaseTransitions++
	}
}

// noteFailure stores and logs the result of a tick. Nil is a success.
func (s *Sharding) noteFailure(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.mu.Lock()
	s.failure, s.isListed = err, s.isListed || err == nil
	s.mu.Unlock()
	switch {
	case err == nil:
		s.logged = ""
	case apierrors.IsForbidden(err) && s.logged != "forbidden":
		s.logged = "forbidden"
		s.log.Error(err, "No right on the Leases of ranges; no handlers are called without it: see docs/permissions.md")
	case !apierrors.IsForbidden(err) && s.logged != "failed":
		s.logged = "failed"
		logging.Warn(s.log, "Cannot read or write the Leases of ranges; handlers are called only in ranges that this "+
			"process holds", "reason", err.Error())
	}
}

package draining

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// lease is one Lease of the operator.
type lease struct{ coordinationv1.Lease }

// String names the Lease for people.
func (l lease) String() string { return fmt.Sprintf("Lease %s/%s", l.Namespace, l.Name) }

// expires returns when the Lease expires, unless it is renewed.
func (l lease) expires() time.Time {
	renewed := ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{})
	return renewed.Add(time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second)
}

// isHeld reports whether a process can hold the Lease now.
func (l lease) isHeld() bool {
	return ptr.Deref(l.Spec.HolderIdentity, "") != "" && l.expires().After(time.Now())
}

// findLeases finds the Leases of the operator for the namespaces of the drain, in all namespaces of the cluster. The
// default name contains the name of the operator and a digest of the namespaces, so no other program has such a Lease.
// Replicas that share the objects have one more for each of them and for each range.
func (r *run) findLeases(ctx context.Context) (found []lease, err error) {
	api, err := coordinationv1client.NewForConfig(r.Config)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(r.LeaseName,
		election.LeaseName(r.Name, r.Namespaces.Texts(), r.Namespaces.LabelSelector()))
	for _, options := range []metav1.ListOptions{
		{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()},
		{LabelSelector: sharding.LeaseSelector(name)},
	} {
		list, err := api.Leases(metav1.NamespaceAll).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil // the cluster has no such API
		}
		if err != nil {
			return nil, err
		}
		for _, one := range list.Items {
			// The layout of the ranges is the Lease of an election, too, so both lists have it.
			if options.LabelSelector == "" || one.Name != name {
				found = append(found, lease{one})
			}
		}
	}
	return found, nil
}

// deleteLease deletes the Lease, unless a process has acquired or renewed it in the meantime.
func (r *run) deleteLease(ctx context.Context, l lease) error {
	api, err := coordinationv1client.NewForConfig(r.Config)
	if err != nil {
		return err
	}
	return api.Leases(l.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &l.ResourceVersion},
	})
}

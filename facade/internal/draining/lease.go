package draining

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// leaseResource is the resource of Leases.
var leaseResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// lease is one Lease of the operator.
type lease struct {
	namespace, name string
	holder          string    // empty if it was released
	expires         time.Time // unless it is renewed
	version         string    // the resource version
}

// String names the Lease for people.
func (l lease) String() string { return fmt.Sprintf("Lease %s/%s", l.namespace, l.name) }

// isHeld reports whether a process can hold the Lease now.
func (l lease) isHeld() bool { return l.holder != "" && l.expires.After(time.Now()) }

// findLeases finds the Leases of the operator for the namespaces of the drain, in all namespaces of the cluster. The
// default name contains the name of the operator and a digest of the namespaces, so no other program has such a Lease.
// Replicas that share the objects have one more for each of them and for each range.
func (r *run) findLeases(ctx context.Context) (found []lease, err error) {
	name := cmp.Or(r.LeaseName,
		election.LeaseName(r.Name, r.Namespaces.Texts(), r.Namespaces.LabelSelector()))
	for _, options := range []metav1.ListOptions{
		{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()},
		{LabelSelector: sharding.LeaseSelector(name)},
	} {
		list, err := r.full.Resource(leaseResource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil // the cluster has no such API
		}
		if err != nil {
			return nil, err
		}
		for _, one := range list.Items {
			// The layout of the ranges is the Lease of an election, too, so both lists have it.
			if options.LabelSelector == "" || one.GetName() != name {
				found = append(found, leaseOf(one))
			}
		}
	}
	return found, nil
}

// leaseOf reads a Lease. Malformed fields count as absent.
func leaseOf(one unstructured.Unstructured) lease {
	l := lease{
		namespace: one.GetNamespace(), name: one.GetName(), version: one.GetResourceVersion(),
	}
	l.holder, _, _ = unstructured.NestedString(one.Object, "spec", "holderIdentity")
	text, _, _ := unstructured.NestedString(one.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(one.Object, "spec", "leaseDurationSeconds")
	if renewed, err := time.Parse(time.RFC3339Nano, text); err == nil {
		l.expires = renewed.Add(time.Duration(seconds) * time.Second)
	}
	return l
}

// deleteLease deletes the Lease, unless a process has acquired or renewed it in the meantime.
func (r *run) deleteLease(ctx context.Context, l lease) error {
	return r.full.Resource(leaseResource).Namespace(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &l.version},
	})
}

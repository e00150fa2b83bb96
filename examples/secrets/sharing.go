package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// spec is the desired state of a SharedSecret.
type spec struct {
	// Source is the name of the Secret, in the same namespace.
	Source string `json:"source"`
	// Namespaces is a label selector of the namespaces that get a copy.
	Namespaces string `json:"namespaces"`
	// PublicKeys are the keys of the data that are also copied to a ConfigMap.
	PublicKeys []string `json:"publicKeys"`
	// ServiceAccounts are the service accounts that pull images with the secret.
	ServiceAccounts []string `json:"serviceAccounts"`
	// Literals are additional data of the copies.
	Literals map[string]string `json:"literals"`
}

// copyStatus is the state of one copy.
type copyStatus struct {
	State   kopf.SubState `json:"state"`
	Message string        `json:"message,omitempty"`
}

func specOf(o *kopf.Unstructured) (spec, error) { return kopf.GetField[spec](o, "spec") }

// copyNamespaces returns the namespaces where copies may exist.
func copyNamespaces(o *kopf.Unstructured) []string {
	return slices.Sorted(maps.Keys(kopf.GetFieldOr(o, "status.places", map[string]copyStatus{})))
}

// copy runs one sub-handler for each namespace, so that no namespace waits for another.
func (d *directory) copy(ctx context.Context, c *Change) error {
	spec, err := specOf(c.Object)
	if err != nil {
		return kopf.Permanent(err)
	}
	wanted, err := d.selected(spec.Namespaces, c.Object.GetNamespace())
	if err != nil {
		return err
	}
	source := &corev1.Secret{}
	key := types.NamespacedName{Namespace: c.Object.GetNamespace(), Name: spec.Source}
	if err := c.Client.Get(ctx, key, source); apierrors.IsNotFound(err) {
		return kopf.Temporary(fmt.Errorf("there is no secret %s yet", spec.Source), 5*time.Second)
	} else if err != nil {
		return err
	}
	for _, namespace := range wanted {
		c.Sub(namespace, d.unlessTerminating(target{namespace, spec, source}), retryPolicy)
	}
	for _, namespace := range copyNamespaces(c.Object) {
		if !slices.Contains(wanted, namespace) {
			c.Sub(removal(namespace), target{namespace, spec, source}.remove, retryPolicy)
		}
	}
	unfinished := c.RunSubs(ctx)
	report(ctx, c, wanted)
	return unfinished
}

// removal returns the id of the sub-handler that removes a copy. It differs from the id of the copying one: if the
// selector changes while copies are being made, the copies written so far must be removed, and a sub-handler that has
// succeeded is not called again for the same change.
func removal(namespace string) string { return "not-" + namespace }

// unlessTerminating delays the copy while the namespace is being deleted. Once it is deleted, it is no longer selected.
func (d *directory) unlessTerminating(t target) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		if d.terminating(t.namespace) {
			return kopf.Temporary(fmt.Errorf("namespace %s is terminating", t.namespace), 2*time.Second)
		}
		return t.write(ctx, c)
	}
}

// report writes the outcomes into the status, and a summary as the result of the handler.
func report(ctx context.Context, c *Change, wanted []string) {
	places, ready := map[string]copyStatus{}, 0
	for _, namespace := range wanted {
		outcome := c.Outcome(namespace)
		places[namespace] = copyStatus{outcome.State, outcome.Message}
		switch outcome.State {
		case kopf.SubSucceeded:
			ready++
		case kopf.SubFailed:
			c.Warn("NotShared", fmt.Sprintf("Namespace %s: %s", namespace, outcome.Message))
		}
	}
	for _, namespace := range copyNamespaces(c.Object) {
		outcome := c.Outcome(removal(namespace))
		if !slices.Contains(wanted, namespace) && outcome.State != kopf.SubSucceeded {
			places[namespace] = copyStatus{outcome.State, outcome.Message}
		}
	}
	log.FromContext(ctx).Info("The secret is shared", "ready", ready, "wanted", len(wanted))
	c.SetResult(map[string]any{"ready": ready, "wanted": len(wanted)})
	c.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.places", places) })
}

// clean is called before a share is deleted. It removes all copies.
func (d *directory) clean(ctx context.Context, c *Change) error {
	spec, err := specOf(c.Object)
	if err != nil {
		return kopf.Permanent(err)
	}
	for _, namespace := range copyNamespaces(c.Object) {
		c.Sub(namespace, target{namespace, spec, nil}.remove, retryPolicy)
	}
	return c.RunSubs(ctx)
}

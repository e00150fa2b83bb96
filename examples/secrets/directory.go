package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// wokenBy is the annotation of a share that says what has changed elsewhere. It makes the share be handled anew, with
// all that is kept of the progress.
const wokenBy = "secrets.example.org/woken-by"

var sharedSecret = schema.GroupVersionKind{Group: "secrets.example.org", Version: "v1", Kind: "SharedSecret"}

// directory is what the handlers of one kind look up of another.
type directory struct {
	namespaces *kopf.Index[string, namespace]           // by name
	shares     *kopf.Index[types.NamespacedName, share] // by the secret that is shared
}

// share is what others need to know of a SharedSecret.
type share struct {
	Key      types.NamespacedName
	Selector string
	Copied   []string // namespaces that have it
}

// namespace is what a share needs to know of one.
type namespace struct {
	Labels      labels.Set
	Terminating bool
}

func namespaceOf(_ context.Context, n *corev1.Namespace) (map[string]namespace, error) {
	return map[string]namespace{n.Name: {n.Labels, n.DeletionTimestamp != nil}}, nil
}

func shareOf(_ context.Context, o *kopf.Unstructured) (map[types.NamespacedName]share, error) {
	spec, err := specOf(o)
	if err != nil {
		return nil, err
	}
	source := types.NamespacedName{Namespace: o.GetNamespace(), Name: spec.Source}
	return map[types.NamespacedName]share{source: {keyOf(o), spec.Namespaces, copied(o)}}, nil
}

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// selected are the names of the namespaces that a selector means, except for that which has the secret.
func (d *directory) selected(selector, except string) ([]string, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, kopf.Permanent(fmt.Errorf("spec.namespaces: %w", err))
	}
	var names []string
	for name, one := range d.namespaces.All() {
		if name != except && parsed.Matches(one.Labels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// terminating tells of a namespace that is still there, but takes nothing new.
func (d *directory) terminating(name string) bool {
	return slices.ContainsFunc(d.namespaces.Get(name), func(n namespace) bool { return n.Terminating })
}

// refresh is called when the data of a secret has changed that is shared, be it while the operator was not running.
func (d *directory) refresh(ctx context.Context, c *kopf.Change[*corev1.Secret]) error {
	return wake(ctx, c, c.Client, d.shares.Get(keyOf(c.Object)))
}

// follow is called for each event of a namespace: it may be selected now, or be no longer.
func (d *directory) follow(ctx context.Context, e *kopf.WatchEvent[*corev1.Namespace]) error {
	if e.Type == kopf.WatchEventListed {
		return nil // all shares are handled then, anyway
	}
	var concerned []share
	for source, s := range d.shares.All() {
		selector, err := labels.Parse(s.Selector)
		selected := err == nil && e.Type != kopf.WatchEventDeleted && selector.Matches(labels.Set(e.Object.Labels))
		if e.Object.Name != source.Namespace && selected != slices.Contains(s.Copied, e.Object.Name) {
			concerned = append(concerned, s)
		}
	}
	return wake(ctx, e, e.Client, concerned)
}

// wake has shares handled anew because of the object that a handler is called for, whatever that is.
func wake[T client.Object](ctx context.Context, h kopf.Call[T], c client.Client, shares []share) error {
	kind := h.Resource().Kind
	reason := fmt.Sprintf("%s %s %s", kind, h.GetObject().GetName(), h.GetObject().GetResourceVersion())
	annotations := map[string]string{wokenBy: reason}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	for _, s := range shares {
		log.FromContext(ctx).Info("Copying a share again", "share", s.Key.String(), "because", kind)
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(sharedSecret)
		o.SetNamespace(s.Key.Namespace)
		o.SetName(s.Key.Name)
		err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

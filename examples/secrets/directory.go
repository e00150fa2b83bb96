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

// wokenByAnnotation is the annotation of a share that names the change of another object. It makes the operator handle
// the share again, with its stored progress.
const wokenByAnnotation = "secrets.example.org/woken-by"

var sharedSecretKind = schema.GroupVersionKind{Group: "secrets.example.org", Version: "v1", Kind: "SharedSecret"}

// directory has the indices by which handlers look up objects of other kinds.
type directory struct {
	namespaces *kopf.Index[string, namespace]           // by name
	shares     *kopf.Index[types.NamespacedName, share] // by the shared secret
}

// share is the data of a SharedSecret that handlers of other kinds need.
type share struct {
	Key            types.NamespacedName
	Selector       string
	CopyNamespaces []string // namespaces that have it
}

// namespace is the data of a namespace that handlers of shares need.
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
	return map[types.NamespacedName]share{source: {keyOf(o), spec.Namespaces, copyNamespaces(o)}}, nil
}

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// selected returns the names of the namespaces that match a selector, except for the namespace of the secret itself.
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

// terminating reports whether a namespace is being deleted, and does not accept new objects.
func (d *directory) terminating(name string) bool {
	return slices.ContainsFunc(d.namespaces.Get(name), func(n namespace) bool { return n.Terminating })
}

// refresh is called when the data of a shared secret has changed, also while the operator was not running.
func (d *directory) refresh(ctx context.Context, c *kopf.Change[*corev1.Secret]) error {
	return wake(ctx, c, c.Client, d.shares.Get(keyOf(c.Object)))
}

// follow is called for each event of a namespace, which may begin or cease to match the selector of a share.
func (d *directory) follow(ctx context.Context, e *kopf.WatchEvent[*corev1.Namespace]) error {
	if e.Type == kopf.WatchEventListed {
		return nil // all shares are handled at the start anyway
	}
	var concerned []share
	for source, s := range d.shares.All() {
		selector, err := labels.Parse(s.Selector)
		selected := err == nil && e.Type != kopf.WatchEventDeleted && selector.Matches(labels.Set(e.Object.Labels))
		if e.Object.Name != source.Namespace && selected != slices.Contains(s.CopyNamespaces, e.Object.Name) {
			concerned = append(concerned, s)
		}
	}
	return wake(ctx, e, e.Client, concerned)
}

// wake makes the operator handle shares again, because the object of the calling handler has changed.
func wake[T client.Object](ctx context.Context, h kopf.Call[T], c client.Client, shares []share) error {
	kind := h.Resource().Kind
	reason := fmt.Sprintf("%s %s %s", kind, h.GetObject().GetName(), h.GetObject().GetResourceVersion())
	annotations := map[string]string{wokenByAnnotation: reason}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	for _, s := range shares {
		log.FromContext(ctx).Info("Copying a share again", "share", s.Key.String(), "because", kind)
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(sharedSecretKind)
		o.SetNamespace(s.Key.Namespace)
		o.SetName(s.Key.Name)
		err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

package clusterops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

// pollInterval is the time between two looks at the answer.
const pollInterval = time.Second

// ObjectLookup names an object and the operator that handles it.
type ObjectLookup struct {
	// Kind is a name that kubectl accepts, with or without its group; Namespace is empty for cluster-scoped kinds.
	Kind, Namespace, Name string
	// Prefix is the prefix of the operator's annotations, and Operator its name.
	Prefix, Operator string
}

// ControlledObject is one object in the cluster. Annotations control its handling.
type ControlledObject struct {
	target  ObjectLookup
	objects *Objects
	present *unstructured.Unstructured
}

// FindObject resolves the kind as kubectl does, and reads the object. It does not decide whether an operator handles
// the object, and needs no running one.
func FindObject(ctx context.Context, config *rest.Config, t ObjectLookup) (*ControlledObject, error) {
	api, err := Connect(config)
	if err != nil {
		return nil, err
	}
	kind, err := api.resolveKind(ctx, t.Kind)
	switch {
	case err != nil:
		return nil, err
	case kind.Namespaced && t.Namespace == "":
		return nil, fmt.Errorf("kind %s is namespaced: use %s NAMESPACE/%s", kind.GroupKind(), t.Kind, t.Name)
	case !kind.Namespaced:
		t.Namespace = "" // as kubectl ignores it
	}
	o := &ControlledObject{target: t, present: &unstructured.Unstructured{}}
	o.present.SetGroupVersionKind(kind.GroupVersionKind)
	if o.objects, err = api.ObjectsOf(kind, false); err != nil {
		return nil, err
	}
	return o, o.read(ctx)
}

// resolveKind finds the kind that a word means.
func (c *Cluster) resolveKind(ctx context.Context, word string) (discovery.Resource, error) {
	selector, err := discovery.ParseSpelling(word)
	if err != nil {
		return discovery.Resource{}, err
	}
	found, err := discovery.NewInquiry(c, nil).Resolve(ctx, selector, nil)
	switch all := slices.Concat(found.Served, found.Ambiguous); {
	case discovery.IsUnserved(err), err == nil && len(all) == 0:
		return discovery.Resource{}, fmt.Errorf("the cluster does not serve a kind %q", word)
	case err != nil:
		return discovery.Resource{}, fmt.Errorf("looking for the kind %q: %w", word, err)
	case len(all) > 1:
		names := make([]string, 0, len(all))
		for _, one := range all {
			names = append(names, one.GroupResource().String())
		}
		return discovery.Resource{}, fmt.Errorf("%q is ambiguous: use one of %s", word, strings.Join(names, ", "))
	default:
		return all[0], nil
	}
}

// read reads the object again.
func (o *ControlledObject) read(ctx context.Context) error {
	body, err := o.objects.Get(ctx, client.ObjectKey{Namespace: o.target.Namespace, Name: o.target.Name})
	if err != nil {
		return fmt.Errorf("reading %s: %w", o, err)
	}
	uid := o.present.GetUID()
	o.present = &unstructured.Unstructured{Object: body}
	if uid != "" && uid != o.present.GetUID() {
		return fmt.Errorf("%s was deleted, and is another object now", o)
	}
	return nil
}

// String returns the kind and the name.
func (o *ControlledObject) String() string {
	name := o.target.Name
	if o.target.Namespace != "" {
		name = o.target.Namespace + "/" + name
	}
	return o.present.GroupVersionKind().GroupKind().String() + " " + name
}

// Key returns the full key of one of the control annotations on this object.
func (o *ControlledObject) Key(name string) string {
	return keys.AnnotationKeyOn(o.present.Object, o.target.Prefix, "", name)
}

// annotation returns the value of one of them.
func (o *ControlledObject) annotation(name string) string {
	return o.present.GetAnnotations()[o.Key(name)]
}

// IsPaused reports whether the object is paused.
func (o *ControlledObject) IsPaused() bool {
	pause, _ := controls.ParsePause(o.annotation(keys.Paused)) // an unknown value does not pause
	return pause.Covers(o.present.GetDeletionTimestamp() != nil)
}

// IsBeingDeleted reports whether the object is being deleted.
func (o *ControlledObject) IsBeingDeleted() bool { return o.present.GetDeletionTimestamp() != nil }

// Request requests another run of the handlers.
func (o *ControlledObject) Request(ctx context.Context, request controls.RunRequest) error {
	return o.annotate(ctx, keys.HandleNow, request.Value)
}

// Pause pauses the object, or changes what its pause covers.
func (o *ControlledObject) Pause(ctx context.Context, value string) error {
	return o.annotate(ctx, keys.Paused, value)
}

// Resume ends the pause. It reports whether the object had the annotation.
func (o *ControlledObject) Resume(ctx context.Context) (had bool, err error) {
	if _, had = o.present.GetAnnotations()[o.Key(keys.Paused)]; !had {
		return false, nil
	}
	return true, o.annotate(ctx, keys.Paused, nil)
}

// annotate sets an annotation; nil removes it. The marker makes other operators ignore it.
func (o *ControlledObject) annotate(ctx context.Context, name string, value any) error {
	changed := map[string]any{o.Key(name): value}
	if prefix := o.target.Prefix; value != nil && keys.NeedsMarker(prefix) {
		changed[keys.MarkerKey(prefix)] = keys.ManagedValue
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": changed}}
	if err := o.objects.Patch(ctx, o.present, patch, o.target.Operator, false); err != nil {
		return fmt.Errorf("annotating %s: %w", o, err)
	}
	return nil
}

// errGone is returned for an object whose deletion has ended.
var errGone = errors.New("it does not exist any more: its deletion was handled")

// AwaitAnswer waits until the operator has answered the request, and reports each change of the state. It returns the
// handlers that have failed permanently. If the object disappears because it was being deleted, nothing has failed.
func (o *ControlledObject) AwaitAnswer(
	ctx context.Context, request controls.RunRequest, report func(state string),
) (failed []string, err error) {
	for last := ""; ; {
		state := "waiting for the operator"
		switch answer := o.annotation(keys.HandledNow); {
		case answer == request.Value:
			return o.failedHandlers(), nil
		case answer == request.StartedAnswer():
			state = "handlers are running, or wait for their next attempt"
		case o.annotation(keys.HandleNow) != request.Value:
			return nil, fmt.Errorf("another request has replaced this one: %s is %q", o.Key(keys.HandleNow),
				o.annotation(keys.HandleNow))
		case o.IsPaused():
			state = "waiting for the end of the pause"
		}
		if state != last {
			report(state)
			last = state
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s was not answered in time: %s; see explain: %w", request.Value, state,
				context.Cause(ctx))
		case <-time.After(pollInterval):
		}
		deleting := o.IsBeingDeleted()
		if err := o.read(ctx); apierrors.IsNotFound(err) && deleting {
			report(errGone.Error())
			return nil, nil
		} else if err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
}

// failedHandlers returns the failures that the operator has recorded, in the order of their ids.
func (o *ControlledObject) failedHandlers() (all []string) {
	failures, _ := controls.ParseFailures(o.annotation(keys.FailedHandlers)) // a malformed list shows none
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		all = append(all, id+": "+failures[id].Message)
	}
	return all
}

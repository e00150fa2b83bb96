package annotating

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/controls"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

const (
	// timeout limits each request to the API server, if the configuration has no limit.
	timeout = time.Minute
	// pollInterval is the time between two looks at the answer.
	pollInterval = time.Second
)

// AnnotatedObject names the object and the operator that handles it.
type AnnotatedObject struct {
	// Kind is a name that kubectl accepts, with or without its group; Namespace is empty for cluster-scoped kinds.
	Kind, Namespace, Name string
	// Prefix is the prefix of the operator's annotations, and Operator its name.
	Prefix, Operator string
}

// Object is one object in the cluster.
type Object struct {
	target  AnnotatedObject
	client  client.Client // for unstructured objects only
	present *unstructured.Unstructured
}

// Find resolves the kind and reads the object.
func Find(ctx context.Context, config *rest.Config, t AnnotatedObject) (*Object, error) {
	config = rest.CopyConfig(config) // the caller's configuration is used for other clients as well
	config.Timeout = cmp.Or(config.Timeout, timeout)
	kind, err := resolveKind(ctx, config, t.Kind)
	if err != nil {
		return nil, err
	}
	scope := meta.RESTScopeRoot
	switch {
	case kind.Namespaced && t.Namespace == "":
		return nil, fmt.Errorf("kind %s is namespaced: use %s NAMESPACE/%s", kind.GroupKind(), t.Kind, t.Name)
	case kind.Namespaced:
		scope = meta.RESTScopeNamespace
	default:
		t.Namespace = "" // as kubectl ignores it
	}
	// The plural is known from discovery, so the mapper sends no requests.
	mapper, plural := meta.NewDefaultRESTMapper(nil), kind.GroupVersionResource()
	mapper.AddSpecific(kind.GroupVersionKind, plural, plural, scope)
	reader, err := client.New(config, client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	o := &Object{target: t, client: reader, present: &unstructured.Unstructured{}}
	o.present.SetGroupVersionKind(kind.GroupVersionKind)
	return o, o.read(ctx)
}

// resolveKind finds the kind that a word means.
func resolveKind(ctx context.Context, config *rest.Config, word string) (discovery.Resource, error) {
	selector, err := discovery.ParseSpelling(word)
	if err != nil {
		return discovery.Resource{}, err
	}
	server, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return discovery.Resource{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	api := discovery.TimeoutGetter{Getter: discovery.API{Client: server.RESTClient()}, Timeout: config.Timeout}
	found, err := discovery.NewInquiry(api, nil).Resolve(ctx, selector, nil)
	switch all := append(slices.Clone(found.Served), found.Ambiguous...); {
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
func (o *Object) read(ctx context.Context) error {
	key := client.ObjectKey{Namespace: o.target.Namespace, Name: o.target.Name}
	uid := o.present.GetUID()
	if err := o.client.Get(ctx, key, o.present); err != nil {
		return fmt.Errorf("reading %s: %w", o, err)
	}
	if uid != "" && uid != o.present.GetUID() {
		return fmt.Errorf("%s was deleted, and is another object now", o)
	}
	return nil
}

// String returns the kind and the name.
func (o *Object) String() string {
	name := o.target.Name
	if o.target.Namespace != "" {
		name = o.target.Namespace + "/" + name
	}
	return o.present.GroupVersionKind().GroupKind().String() + " " + name
}

// Key returns the full key of one of the control annotations on this object.
func (o *Object) Key(name string) string {
	return keys.ControlKey(o.target.Prefix, o.present.Object, name)
}

// annotation returns the value of one of them.
func (o *Object) annotation(name string) string { return o.present.GetAnnotations()[o.Key(name)] }

// IsPaused reports whether the object is paused.
func (o *Object) IsPaused() bool {
	pause, _ := controls.ParsePause(o.annotation(keys.Paused)) // an unknown value does not pause
	return pause.Covers(o.present.GetDeletionTimestamp() != nil)
}

// IsBeingDeleted reports whether the object is being deleted.
func (o *Object) IsBeingDeleted() bool { return o.present.GetDeletionTimestamp() != nil }

// Request requests another run of the handlers.
func (o *Object) Request(ctx context.Context, request controls.RunRequest) error {
	return o.annotate(ctx, keys.HandleNow, request.Value)
}

// Pause pauses the object, or changes what its pause covers.
func (o *Object) Pause(ctx context.Context, value string) error {
	return o.annotate(ctx, keys.Paused, value)
}

// Resume ends the pause. It reports whether the object had the annotation.
func (o *Object) Resume(ctx context.Context) (had bool, err error) {
	if _, had = o.present.GetAnnotations()[o.Key(keys.Paused)]; !had {
		return false, nil
	}
	return true, o.annotate(ctx, keys.Paused, nil)
}

// annotate sets an annotation; nil removes it. The marker makes other operators ignore it.
func (o *Object) annotate(ctx context.Context, name string, value any) error {
	changed := map[string]any{o.Key(name): value}
	if prefix := o.target.Prefix; value != nil && keys.NeedsMarker(prefix) {
		changed[keys.MarkerKey(prefix)] = keys.ManagedValue
	}
	// The uid refuses the write to another object of the same name.
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.present.GetUID(), "annotations": changed,
	}})
	if err == nil {
		err = o.client.Patch(ctx, o.present, client.RawPatch(types.MergePatchType, body),
			client.FieldOwner(o.target.Operator))
	}
	if err != nil {
		return fmt.Errorf("annotating %s: %w", o, err)
	}
	return nil
}

// errGone is returned for an object whose deletion has ended.
var errGone = errors.New("it does not exist any more: its deletion was handled")

// AwaitAnswer waits until the operator has answered the request, and reports each change of the state. It returns the
// handlers that have failed permanently. If the object disappears because it was being deleted, nothing has failed.
func (o *Object) AwaitAnswer(
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
func (o *Object) failedHandlers() (all []string) {
	failures, _ := controls.ParseFailures(o.annotation(keys.FailedHandlers)) // a malformed list shows none
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		all = append(all, id+": "+failures[id].Message)
	}
	return all
}

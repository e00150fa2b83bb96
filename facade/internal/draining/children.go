package draining

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// parentLabel returns the label of all children.
func (d *Drain) parentLabel() string { return (&children.Keeper{Prefix: d.Prefix}).ParentLabel() }

// addMarks adds the marks of a child. The child itself and its owner references stay.
func (d *Drain) addMarks(to removal, body map[string]any) {
	annotations, _ := storage.AnnotationsOf(body)
	declared, _ := annotations[d.Prefix+"/"+keys.DeclaredIn].(string)
	if !d.mayRemoveShared() && !d.isDeclaredHere(declared) {
		return
	}
	to.addMetadata(body, "labels", d.parentLabel())
	to.addAnnotation(body, d.Prefix+"/"+keys.DeclaredIn)
	to.addAnnotation(body, d.Prefix+"/"+keys.RetainedBy)
}

// isDeclaredHere reports whether all records that a child names are those of handlers of this operator.
func (d *Drain) isDeclaredHere(declared string) bool {
	if declared == "" {
		return false
	}
	known := map[string]bool{"retained": true} // the end of the list on a retained child
	for _, kind := range d.Kinds {
		for _, id := range kind.IDs {
			for _, of := range []string{keys.ChildrenOf, keys.ChildrenOfRun} {
				known[strings.TrimPrefix(keys.CurrentKey("", of+id), "/")] = true
			}
		}
	}
	return !slices.ContainsFunc(strings.Split(declared, ","), func(name string) bool { return !known[name] })
}

// marksOf finds the marks on an object that is only a child.
func (d *Drain) marksOf(body map[string]any) (traces, error) {
	t := traces{places: removal{}}
	d.addMarks(t.places, body)
	return t, nil
}

// drainChildren removes the marks from all children. They can be of any kind, and their parents may be gone, so all
// kinds of the cluster are searched by the label. Kinds that may not be listed are only a problem if the operator is
// known to have children of them.
func (r *run) drainChildren(ctx context.Context) {
	if r.KeepMemory {
		return
	}
	all, err := discovery.ListResources(ctx, r)
	var incomplete *discovery.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		r.leave("all kinds", "children", err)
		return
	}
	if incomplete != nil {
		r.note("Some kinds could not be searched for children: %v", err)
	}
	var unlisted []string
	for _, resource := range searchedResources(all) {
		err := r.drainList(ctx, resource, r.parentLabel(), r.marksOf)
		switch {
		case err == nil:
		case apierrors.IsForbidden(err) && !r.childKinds[resource.GroupVersionKind.GroupKind()],
			apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			unlisted = append(unlisted, resource.GroupResource().String())
		default:
			r.leave(resource.GroupResource().String(), "children", err)
		}
	}
	if len(unlisted) > 0 {
		r.note("These kinds may not be listed, so they were not searched for marks of children: %s",
			strings.Join(unlisted, ", "))
	}
}

// searchedResources returns one version of each resource that can be listed and patched. The preferred version wins.
func searchedResources(all []discovery.Resource) (found []discovery.Resource) {
	at := map[schema.GroupResource]int{}
	for _, one := range all {
		if !one.HasVerbs("list", "patch") {
			continue
		}
		place, known := at[one.GroupResource()]
		switch {
		case !known:
			at[one.GroupResource()] = len(found)
			found = append(found, one)
		case one.Preferred && !found[place].Preferred:
			found[place] = one
		}
	}
	return found
}

// noteChildKinds records the kinds of the children that an object lists.
func (r *run) noteChildKinds(body map[string]any) {
	kinds, err := children.DeclaredKinds(r.Prefix, body)
	if err != nil {
		r.note("%s: %v", describeObject(body), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range kinds {
		r.childKinds[kind] = true
	}
}

package interop_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observation is one look at everything.
type observation struct {
	objects map[string]*unstructured.Unstructured
	calls   map[string]bool // of this life, such as "name/u1/hang"
}

func (r *relay) observe(ctx context.Context) *observation {
	GinkgoHelper()
	s := &observation{objects: map[string]*unstructured.Unstructured{}, calls: map[string]bool{}}
	for _, one := range r.runner.calls() {
		id, _, _ := strings.Cut(one.ID, "/")
		s.calls[one.Name+"/"+id+"/"+one.Action], s.calls[one.Name+"/"+id] = true, true
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("KopfExampleList")
	Expect(api.List(ctx, list, client.InNamespace(r.namespace))).To(Succeed())
	for _, object := range list.Items {
		s.objects[object.GetName()] = &object
	}
	return s
}

// ready reports whether the work of the life before has ended, and the handlers of this life have begun.
func (r *relay) ready(one row, s *observation) bool {
	value, deleted := one.stateBefore(r.number)
	switch {
	case one.leg(r.number).change == creation, one.leg(r.number).change == noChange && r.number < legCount:
		return true
	case deleted:
		return s.objects[one.name] == nil
	case one.labels["daemon"] != nil && !s.calls[one.name+"/w"],
		one.labels["resumed"] != nil && r.number > 0 && !s.calls[one.name+"/r"]:
		return false
	}
	return isFullyHandled(s.objects[one.name], value)
}

// reached reports whether the row is at the point where this life must end.
func (r *relay) reached(one row, s *observation) bool {
	object := s.objects[one.name]
	value, deleted := one.stateDuring(r.number)
	which := one.idPrefix(r.number)
	succeeded := func(id string) bool { return record(object, id)["success"] == true }
	switch at := one.leg(r.number).killPoint; at {
	case killBeforeChange:
		value, _ := one.stateBefore(r.number)
		return isFullyHandled(object, value)
	case killInFirst:
		return s.calls[one.name+"/"+which+"1/hang"]
	case killBetween:
		return record(object, which+"2")["message"] == "later" && succeeded(which+"1") &&
			(deleted || succeeded("f.spec.field"))
	case killInSecond:
		return s.calls[one.name+"/"+which+"2/hang"] && succeeded(which+"1")
	case "stopping":
		return s.calls[one.name+"/w/stopping"]
	case "tried":
		return s.calls[one.name+"/o/later"]
	case "released":
		_, kopf := r.runner.(*relayKopf) // which leaves the finalizer there until the next event
		return s.calls[one.name+"/w"] && isFullyHandled(object, value) && (kopf || len(object.GetFinalizers()) == 0)
	default:
		return deleted && object == nil || !deleted && isFullyHandled(object, value)
	}
}

const kopfPrefix = "kopf.zalando.org/"

var progressIDs = []string{"c1", "c2", "u1", "u2", "f.spec.field", "r", "d1", "d2", "o"}

// isFullyHandled reports whether the object with that value was handled completely.
func isFullyHandled(object *unstructured.Unstructured, value string) bool {
	var handled struct{ Spec struct{ Field string } }
	return object != nil && object.GetDeletionTimestamp() == nil &&
		json.Unmarshal([]byte(object.GetAnnotations()[lastHandled]), &handled) == nil && handled.Spec.Field == value &&
		!slices.ContainsFunc(progressIDs, func(id string) bool { return record(object, id) != nil })
}

func record(object *unstructured.Unstructured, id string) (decoded map[string]any) {
	if object != nil {
		_ = json.Unmarshal([]byte(object.GetAnnotations()[kopfPrefix+id]), &decoded)
	}
	return decoded
}

package memapi

import (
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// maxReviews limits how often a request is reviewed again because its object has changed since the last review.
const maxReviews = 20

// AddReviewer registers a reviewer for the creation, update and deletion of single objects by clients. Reviewers run in
// the order of their registration, until remove is called. Reviewers that are no longer alive are removed first.
// [Server.Put], [Server.Edit], [Server.Delete] and the garbage collection skip reviewers.
func (s *Server) AddReviewer(review Reviewer, isAlive func() bool) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The pointer identifies the reviewer at its removal.
	added := &reviewer{review, isAlive}
	s.dropReviewers(func(one *reviewer) bool { return !one.isAlive() })
	s.reviewers = append(s.reviewers, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropReviewers(func(one *reviewer) bool { return one == added })
	}
}

// dropReviewers removes reviewers from a copy of the list, because requests in progress iterate over the former list.
func (s *Server) dropReviewers(which func(one *reviewer) bool) {
	s.reviewers = slices.DeleteFunc(slices.Clone(s.reviewers), which)
}

// reviewObject lets the reviewers review an object before it is stored, or its deletion if object is nil. It returns
// the changed object, or nil if the reviewers do not change it. The lock is released meanwhile.
func (s *Server) reviewObject(t target, mutating bool, object, before map[string]any) (map[string]any, error) {
	// The server's own changes are not reviewed.
	if t.reviewContext == nil || len(s.reviewers) == 0 {
		return nil, nil
	}
	request, err := t.admissionRequest(object, before)
	if err != nil {
		return nil, err
	}
	reviewed, err := s.askReviewers(t, mutating, request)
	switch {
	case err != nil:
		return nil, err
	case s.hasChanged(t, before):
		return nil, errChangedInReview
	case reviewed == nil || object == nil:
		return nil, nil
	}
	// Reviewers cannot change the fields that the server sets, nor the part that the path of the request does not
	// include.
	changed := t.permittedChanges(object, reviewed)
	// The fields are restored from the object that the request would store.
	keepFields(metadataOf(changed), metadataOf(object), "uid", "name", "namespace", "creationTimestamp",
		"resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields")
	return changed, t.applySchema(changed)
}

// askReviewers calls the reviewers in their order; each gets the object as changed by the former ones. The lock is
// released meanwhile, and taken again even if a reviewer panics, because the caller unlocks.
func (s *Server) askReviewers(
	t target, mutating bool, request *admissionv1.AdmissionRequest,
) (changed map[string]any, err error) {
	reviewers := s.reviewers
	s.mu.Unlock()
	defer s.mu.Lock()
	for _, one := range reviewers {
		// A review stops at the first refusal.
		text, warnings, err := one.review(t.reviewContext, mutating, request)
		if t.notes.warnings = append(t.notes.warnings, warnings...); err != nil {
			return nil, err
		}
		if text == nil {
			continue
		}
		// The next reviewer gets the changed object.
		request.Object.Raw, changed = text, nil
		if err := json.Unmarshal(text, &changed); err != nil {
			return nil, internalError(err)
		}
		delete(changed, "apiVersion")
		delete(changed, "kind")
	}
	return changed, nil
}

// hasChanged reports whether the stored object is no longer the one that was reviewed, or its definition has changed. A
// new object does not have a stored one; its creation fails later if there is one by now.
func (s *Server) hasChanged(t target, before map[string]any) bool {
	r, isServed := s.findResource(t.groupVersion(), t.Plural)
	if !isServed || s.newTarget(r, "", "").storageSchema != t.storageSchema {
		return true
	}
	stored := s.objects[t.groupResource()][t.objectKey()]
	return before != nil &&
		(stored == nil || metadataOf(stored)["resourceVersion"] != metadataOf(before)["resourceVersion"])
}

// admissionRequest returns the admission request for webhooks.
func (t target) admissionRequest(object, before map[string]any) (*admissionv1.AdmissionRequest, error) {
	dry := t.isDryRun
	request := &admissionv1.AdmissionRequest{
		UID:       types.UID(fmt.Sprint("review-of-", t.objectKey())),
		Kind:      metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
		Resource:  metav1.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Plural},
		Name:      t.name,
		Namespace: t.namespace, SubResource: t.subresource, DryRun: &dry,
		UserInfo: authenticationv1.UserInfo{Username: t.manager},
	}
	request.RequestKind, request.RequestResource, request.RequestSubResource = &request.Kind, &request.Resource,
		t.subresource
	// The objects in a review of the scale subresource are of kind Scale. RequestKind points to Kind, so both change.
	if !t.reviewedKind.Empty() {
		request.Kind = metav1.GroupVersionKind(t.reviewedKind)
	}
	// The operation follows from the objects that exist.
	switch {
	case object == nil:
		request.Operation = admissionv1.Delete
	case before == nil:
		request.Operation = admissionv1.Create
	default:
		request.Operation = admissionv1.Update
	}
	for into, from := range map[*runtime.RawExtension]map[string]any{
		&request.Object: object, &request.OldObject: before,
	} {
		if from == nil {
			continue
		}
		text, err := json.Marshal(t.withKind(from))
		if err != nil {
			return nil, err
		}
		into.Raw = text
	}
	return request, nil
}

// serveReviewed serves a request, and serves it again if its object changes during a review.
func (s *Server) serveReviewed(r *http.Request, parts []string, partial bool, body []byte) *http.Response {
	// A reviewer that changes the object itself would loop forever.
	for range maxReviews {
		// The resource may have been removed during a review, so each attempt starts with the path.
		t, ok := s.findTarget(parts)
		if !ok {
			return newErrorResponse(r, s.missingPathError(t, parts))
		}
		if err := t.readOptions(r); err != nil {
			return newErrorResponse(r, err)
		}
		t.isMetadataOnly, t.reviewContext = partial, r.Context()
		if response := s.serveObjects(r, t, body); response != nil {
			for _, warning := range t.notes.warnings {
				response.Header.Add("Warning", warningHeader(warning))
			}
			return response
		}
	}
	return newErrorResponse(r, apierrors.NewTimeoutError("the object changes faster than it is reviewed", 1))
}

package memapi

import (
	"context"
	"errors"
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

// Reviewer takes the place of a cluster's webhooks. It is called for the mutating webhooks, then for the validating
// ones. It returns the object to store, or nil if it does not change the object, and warnings for the client. An error
// refuses the request, like that of [Admission].Validate. The server is not locked while a reviewer runs, so a reviewer
// may send requests to it.
type Reviewer func(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error)

// reviewer is one registered [Reviewer].
type reviewer struct {
	review  Reviewer
	isAlive func() bool
}

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

// reviews holds the verdicts on one request. The server is locked while it serves a request, but must not be locked
// while a reviewer runs. So an attempt to serve stops at a missing verdict, and the request is served again once the
// verdict exists.
type reviews struct {
	verdicts       map[string]verdict
	reviewCounts   map[string]int // the number of reviews by object
	missing        *missingReview
	numbers        []int          // the numbers for names and uids, which must be the same in each attempt
	usedNumbers    int            // how many of the numbers this attempt has used
	deletedObjects map[string]any // the objects of a collection that earlier attempts have deleted
}

// verdict is the combined answer of all reviewers.
type verdict struct {
	object   map[string]any
	warnings []string
	err      error
}

// missingReview describes the review that an attempt to serve a request lacks.
type missingReview struct {
	key      string
	object   string
	mutating bool
	request  *admissionv1.AdmissionRequest
}

// errMissingReview ends an attempt to serve a request. Clients never receive it.
var errMissingReview = errors.New("the request is not reviewed yet")

// reviewObject applies the verdict on an object before it is stored, or on its deletion if object is nil. It returns
// the changed object, or nil if the verdict does not change it.
func (s *Server) reviewObject(t target, mutating bool, object, before map[string]any) (map[string]any, error) {
	// The server's own changes are not reviewed.
	if t.reviews == nil || len(s.reviewers) == 0 {
		return nil, nil
	}
	// The key contains the stored version: if the object has changed since the review, it is reviewed again.
	name := fmt.Sprint(mutating, " ", t.objectKey())
	key := name + " new"
	// An update is reviewed for exactly one stored version.
	if before != nil {
		key = fmt.Sprint(name, " ", metadataOf(before)["resourceVersion"])
	}
	known, ok := t.reviews.verdicts[key]
	if !ok {
		request, err := t.admissionRequest(object, before)
		if err != nil {
			return nil, err
		}
		t.reviews.missing = &missingReview{key: key, object: name, mutating: mutating, request: request}
		return nil, errMissingReview
	}
	// Warnings are part of the verdict, and must not be lost when the request is served again.
	t.notes.warnings = append(t.notes.warnings, known.warnings...)
	if known.err != nil || known.object == nil || object == nil {
		return nil, known.err
	}
	// Reviewers cannot change the fields that the server sets, nor the part that the path of the request does not
	// include.
	changed := t.permittedChanges(object, cloneObject(known.object))
	// The fields are restored from the object that the request would store.
	for _, own := range []string{
		"uid", "name", "namespace", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields",
	} {
		delete(metadataOf(changed), own)
		if value, is := metadataOf(object)[own]; is {
			metadataOf(changed)[own] = value
		}
	}
	return changed, t.applySchema(changed)
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

// askReviewers calls the reviewers in their order; each gets the object as changed by the former ones. The server must
// not be locked.
func (m *missingReview) askReviewers(ctx context.Context, reviewers []*reviewer) (v verdict) {
	for _, one := range reviewers {
		// A review stops at the first refusal.
		text, warnings, err := one.review(ctx, m.mutating, m.request)
		if v.warnings = append(v.warnings, warnings...); err != nil {
			v.err = err
			return v
		}
		if text == nil {
			continue
		}
		// The next reviewer gets the changed object.
		m.request.Object.Raw, v.object = text, nil
		if err := json.Unmarshal(text, &v.object); err != nil {
			v.err = internalError(err)
			return v
		}
		delete(v.object, "apiVersion")
		delete(v.object, "kind")
	}
	return v
}

// serveReviewed serves a request, and repeats that after each review. It is called with the lock, and releases the lock
// during each review.
func (s *Server) serveReviewed(r *http.Request, parts []string, partial bool, body []byte) *http.Response {
	known := &reviews{verdicts: map[string]verdict{}, reviewCounts: map[string]int{}, deletedObjects: map[string]any{}}
	for {
		// The resource may have been removed during a review, so each attempt starts with the path.
		t, ok := s.findTarget(parts)
		if !ok {
			return newErrorResponse(r, s.missingPathError(t, parts))
		}
		if err := t.readOptions(r); err != nil {
			return newErrorResponse(r, err)
		}
		// The counters start again with each attempt, but the drawn numbers remain.
		t.isMetadataOnly, t.reviews, known.usedNumbers = partial, known, 0
		response := s.serveObjects(r, t, body)
		missing := known.missing
		if missing == nil {
			for _, warning := range t.notes.warnings {
				response.Header.Add("Warning", warningHeader(warning))
			}
			return response
		}
		known.missing = nil
		// A reviewer that changes the object itself would loop forever.
		if known.reviewCounts[missing.object]++; known.reviewCounts[missing.object] > maxReviews {
			return newErrorResponse(r, apierrors.NewTimeoutError("the object changes faster than it is reviewed", 1))
		}
		// The verdict is stored; the next attempt finds it.
		known.verdicts[missing.key] = s.askUnlocked(r.Context(), missing)
	}
}

// askUnlocked releases the lock while the reviewers run. It takes the lock again even if a reviewer panics, because the
// caller unlocks.
func (s *Server) askUnlocked(ctx context.Context, missing *missingReview) verdict {
	reviewers := s.reviewers
	s.mu.Unlock()
	defer s.mu.Lock()
	return missing.askReviewers(ctx, reviewers)
}

// nextNumber returns a number for a name or a uid that no other object has. All attempts to serve a request get the
// same numbers, because reviewers have already seen the names.
func (s *Server) nextNumber(t target) int {
	if t.reviews == nil {
		s.lastNumber++
		return s.lastNumber
	}
	// The first attempt draws numbers; later ones reuse them in the same order.
	if t.reviews.usedNumbers == len(t.reviews.numbers) {
		s.lastNumber++
		t.reviews.numbers = append(t.reviews.numbers, s.lastNumber)
	}
	t.reviews.usedNumbers++
	return t.reviews.numbers[t.reviews.usedNumbers-1]
}

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

// mostReviews is how often one request for an object is reviewed again because the object has changed meanwhile.
const mostReviews = 20

// Reviewer answers for the webhooks of a cluster: the mutating ones, then the validating ones. It returns the object
// as it is to be stored, or nil if nothing changes it, and the warnings for the client. Its error refuses the request,
// as that of [Admission].Validate does. The server is not locked meanwhile, and may be asked for anything.
type Reviewer func(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error)

// reviewer is one that was added.
type reviewer struct {
	review  Reviewer
	isAlive func() bool
}

// AddReviewer has a reviewer asked about the creations, updates and deletions of single objects by clients, after those
// that were added before, until remove is called. It takes the place of all that are not alive any more. [Server.Put],
// [Server.Edit], [Server.Delete] and the garbage collection pass by it.
func (s *Server) AddReviewer(review Reviewer, isAlive func() bool) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &reviewer{review, isAlive}
	s.dropReviewers(func(one *reviewer) bool { return !one.isAlive() })
	s.reviewers = append(s.reviewers, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropReviewers(func(one *reviewer) bool { return one == added })
	}
}

// dropReviewers copies the list, as requests under way have the former one.
func (s *Server) dropReviewers(which func(one *reviewer) bool) {
	s.reviewers = slices.DeleteFunc(slices.Clone(s.reviewers), which)
}

// reviews are the verdicts on one request. The request is served again for each missing verdict, because the server is
// locked while it serves, and must not be while a reviewer runs.
type reviews struct {
	made    map[string]verdict
	asked   map[string]int // how often, by object
	missing *missingReview
	numbers []int          // those that were drawn for the name and the uid, which stay the same
	drawn   int            // how many of them in this attempt
	deleted map[string]any // the objects of a collection that are deleted already
}

type verdict struct {
	object   map[string]any
	warnings []string
	err      error
}

// missingReview ends an attempt to serve a request.
type missingReview struct {
	key      string
	object   string
	mutating bool
	request  *admissionv1.AdmissionRequest
}

var errMissingReview = errors.New("the request is not reviewed yet")

// review applies the verdict on the object that is about to be stored; if object is nil, on the deletion. It returns
// the changed object; nil if the verdict changes nothing.
func (s *Server) review(t target, mutating bool, object, before map[string]any) (map[string]any, error) {
	if t.reviews == nil || len(s.reviewers) == 0 {
		return nil, nil
	}
	name := fmt.Sprint(mutating, " ", t.key())
	key := name + " new"
	if before != nil {
		key = fmt.Sprint(name, " ", metadataOf(before)["resourceVersion"])
	}
	known, ok := t.reviews.made[key]
	if !ok {
		request, err := t.reviewed(object, before)
		if err != nil {
			return nil, err
		}
		t.reviews.missing = &missingReview{key: key, object: name, mutating: mutating, request: request}
		return nil, errMissingReview
	}
	t.notes.warnings = append(t.notes.warnings, known.warnings...)
	if known.err != nil || known.object == nil || object == nil {
		return nil, known.err
	}
	changed := t.permitted(object, cloned(known.object))
	for _, own := range []string{
		"uid", "name", "namespace", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields",
	} {
		delete(metadataOf(changed), own)
		if value, is := metadataOf(object)[own]; is {
			metadataOf(changed)[own] = value
		}
	}
	return changed, t.coerce(changed)
}

// reviewed is the request as webhooks get it.
func (t target) reviewed(object, before map[string]any) (*admissionv1.AdmissionRequest, error) {
	dry := t.dry
	request := &admissionv1.AdmissionRequest{
		UID:       types.UID(fmt.Sprint("review-of-", t.key())),
		Kind:      metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
		Resource:  metav1.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Plural},
		Name:      t.name,
		Namespace: t.namespace, SubResource: t.subresource, DryRun: &dry,
		UserInfo: authenticationv1.UserInfo{Username: t.manager},
	}
	request.RequestKind, request.RequestResource, request.RequestSubResource = &request.Kind, &request.Resource,
		t.subresource
	if !t.reviewedKind.Empty() {
		request.Kind = metav1.GroupVersionKind(t.reviewedKind)
	}
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
		text, err := json.Marshal(t.named(from))
		if err != nil {
			return nil, err
		}
		into.Raw = text
	}
	return request, nil
}

// ask has the reviewers answer. The server is not locked.
func (m *missingReview) ask(ctx context.Context, reviewers []*reviewer) (v verdict) {
	for _, one := range reviewers {
		text, warnings, err := one.review(ctx, m.mutating, m.request)
		if v.warnings = append(v.warnings, warnings...); err != nil {
			v.err = err
			return v
		}
		if text == nil {
			continue
		}
		m.request.Object.Raw, v.object = text, nil
		if err := json.Unmarshal(text, &v.object); err != nil {
			v.err = internal(err)
			return v
		}
		delete(v.object, "apiVersion")
		delete(v.object, "kind")
	}
	return v
}

// serveReviewed serves a request, and has it reviewed in between. It is called with the server locked, which it is not
// while it is reviewed.
func (s *Server) serveReviewed(r *http.Request, parts []string, partial bool, body []byte) *http.Response {
	known := &reviews{made: map[string]verdict{}, asked: map[string]int{}, deleted: map[string]any{}}
	for {
		t, ok := s.route(parts)
		if !ok {
			return refuse(r, s.missing(t, parts))
		}
		if err := t.options(r); err != nil {
			return refuse(r, err)
		}
		t.partial, t.reviews, known.drawn = partial, known, 0
		response := s.serve(r, t, body)
		missing := known.missing
		if missing == nil {
			for _, warning := range t.notes.warnings {
				response.Header.Add("Warning", header(warning))
			}
			return response
		}
		known.missing = nil
		if known.asked[missing.object]++; known.asked[missing.object] > mostReviews {
			return refuse(r, apierrors.NewTimeoutError("the object changes faster than it is reviewed", 1))
		}
		known.made[missing.key] = s.askUnlocked(r.Context(), missing)
	}
}

// askUnlocked asks the reviewers while the server is not locked. It is locked again after a panic, too.
func (s *Server) askUnlocked(ctx context.Context, missing *missingReview) verdict {
	reviewers := s.reviewers
	s.mu.Unlock()
	defer s.mu.Lock()
	return missing.ask(ctx, reviewers)
}

// number returns a number that no other object has. The attempts to serve one request get the same numbers.
func (s *Server) number(t target) int {
	if t.reviews == nil {
		s.uids++
		return s.uids
	}
	if t.reviews.drawn == len(t.reviews.numbers) {
		s.uids++
		t.reviews.numbers = append(t.reviews.numbers, s.uids)
	}
	t.reviews.drawn++
	return t.reviews.numbers[t.reviews.drawn-1]
}

package reviewing

import (
	"context"
	"errors"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Reviews sends the requests of an API server in memory to webhooks.
type Reviews struct {
	Server *memapi.Server
	// Call sends a request to one webhook.
	Call func(ctx context.Context, h Hook, asked *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
	// Match evaluates the conditions of a webhook, which are in CEL. It applies the failure policy: its error rejects
	// the request. Without Match, requests for webhooks with conditions are rejected.
	Match func(ctx context.Context, h Hook, asked *admissionv1.AdmissionRequest) (bool, error)
}

var errNoConditions = errors.New("the API server in memory does not evaluate matchConditions")

// review is the state of one request while it passes the webhooks of one kind, mutating or validating.
type review struct {
	Reviews
	request  admissionv1.AdmissionRequest // in the version that the client has used, with all changes so far
	warnings []string
	changed  bool
}

// ReviewRequest sends a request to the matching webhooks, one after the other, like a [memapi.Reviewer]. Mutating
// webhooks with the reinvocation policy IfNeeded are called a second time if later ones have changed the object.
func (with Reviews) ReviewRequest(
	ctx context.Context, hooks []Hook, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error) {
	r := review{Reviews: with, request: *request}
	called, again := map[int]bool{}, map[int]bool{}
	for i, h := range hooks {
		if h.mutating != mutating {
			continue
		}
		isCalled, changes, err := r.callIfMatching(ctx, h)
		if err != nil {
			return nil, r.warnings, err
		}
		// Webhooks with the reinvocation policy that were called before this change are called again.
		if changes {
			maps.Copy(again, called)
		}
		if isCalled && h.isReinvoked() {
			called[i] = true
		}
	}
	// As in the API server, there is only one more round: its own changes do not cause further calls.
	for i, h := range hooks {
		if again[i] {
			if _, _, err := r.callIfMatching(ctx, h); err != nil {
				return nil, r.warnings, err
			}
		}
	}
	// A nil object means that it is unchanged.
	if r.changed {
		object = r.request.Object.Raw
	}
	return object, r.warnings, nil
}

// callIfMatching calls one webhook if it matches the request. The checks have the order of the API server: selectors
// and rules, then match conditions, then the support of dry-run requests.
func (r *review) callIfMatching(ctx context.Context, h Hook) (isCalled, changes bool, err error) {
	if !h.matchesSelectors(&r.request, r.Server) {
		return false, false, nil
	}
	asked, matches, err := r.requestInRuleVersion(h)
	if err != nil || !matches {
		return false, false, err
	}
	if len(h.MatchConditions) > 0 {
		if err = errNoConditions; r.Match != nil {
			matches, err = r.Match(ctx, h, asked)
		}
		if err != nil {
			// The API server also responds with Forbidden if a condition cannot be evaluated.
			of := schema.GroupResource{Group: r.request.Resource.Group, Resource: r.request.Resource.Resource}
			return false, false, apierrors.NewForbidden(of, r.request.Name, err)
		} else if !matches {
			return false, false, nil
		}
	}
	if asked.DryRun != nil && *asked.DryRun && !h.supportsDryRun() {
		return false, false, apierrors.NewBadRequest(
			fmt.Sprintf("admission webhook %q does not support dry run", h.Name),
		)
	}
	changes, err = r.callAndApply(ctx, h, asked)
	return true, changes, err
}

// requestInRuleVersion returns the request in a version for which the entry has a rule: the client's version, or an
// equivalent one, to which the objects are converted.
func (r *review) requestInRuleVersion(h Hook) (asked *admissionv1.AdmissionRequest, matches bool, err error) {
	if h.hasRule(&r.request) {
		return &r.request, true, nil
	}
	if h.isExactMatch() {
		return nil, false, nil
	}
	from := schema.GroupVersionResource(r.request.Resource)
	for _, other := range r.Server.Equivalents(from) {
		// Only the copy is converted: the next webhook may need another version.
		converted := r.request
		converted.Resource = metav1.GroupVersionResource(other.GroupVersionResource())
		converted.Kind = metav1.GroupVersionKind{Group: other.Group, Version: other.Version, Kind: other.Kind}
		if !h.hasRule(&converted) {
			continue
		}
		if converted.Object.Raw, err = r.Server.Convert(r.request.Object.Raw, from, other); err != nil {
			return nil, false, apierrors.NewInternalError(err)
		}
		if converted.OldObject.Raw, err = r.Server.Convert(r.request.OldObject.Raw, from, other); err != nil {
			return nil, false, apierrors.NewInternalError(err)
		}
		return &converted, true, nil
	}
	return nil, false, nil
}

// callAndApply calls the webhook and applies its response to the request.
func (r *review) callAndApply(
	ctx context.Context, h Hook, asked *admissionv1.AdmissionRequest,
) (changes bool, err error) {
	// Each call has its own uid, which the response must repeat.
	one := *asked
	one.UID = uuid.NewUUID()
	response, err := r.Call(ctx, h, &one)
	if err == nil && response.UID != one.UID {
		err = fmt.Errorf("received invalid webhook response: expected response.uid=%q, got %q", one.UID, response.UID)
	}
	switch {
	case err != nil && h.IgnoresFailure():
		return false, nil
	case err != nil:
		return false, h.callFailedError(err)
	}
	// Warnings reach the client even if a webhook denies the request.
	r.warnings = append(r.warnings, response.Warnings...)
	if !response.Allowed {
		return false, h.requestDeniedError(response.Result)
	}
	if len(response.Patch) == 0 {
		return false, nil
	}
	after, err := ApplyJSONPatch(asked.Object.Raw, response.Patch)
	if err != nil {
		return false, h.callFailedError(err)
	}
	// The patch was made for a converted object. Later webhooks and the store need the client's version.
	if asked.Resource != r.request.Resource {
		of := r.request.Kind
		back := memapi.Resource{
			Group: of.Group, Version: of.Version, Kind: of.Kind, Plural: r.request.Resource.Resource,
		}
		if after, err = r.Server.Convert(after, schema.GroupVersionResource(asked.Resource), back); err != nil {
			return false, apierrors.NewInternalError(err)
		}
	}
	changes = !sameJSON(r.request.Object.Raw, after)
	r.request.Object.Raw, r.changed = after, true
	return changes, nil
}

// sameJSON reports whether two texts have the same JSON value. A patch can change the order of fields without an
// effect.
func sameJSON(a, b []byte) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && equality.Semantic.DeepEqual(one, other)
}

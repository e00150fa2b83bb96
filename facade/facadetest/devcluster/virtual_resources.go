package devcluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// defaultTokenLifetime is the default lifetime of tokens of service accounts.
const defaultTokenLifetime = time.Hour

// The limits of the real server for the lifetime of a token, in seconds.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

// kubeletSubresources lists the subresources that a kubelet serves. No kubelet runs here.
var kubeletSubresources = []string{"log", "exec", "attach", "portforward", "proxy"}

// serveVirtual answers requests for objects that are computed instead of stored: access reviews and tokens. It reports
// false for other requests.
func (h *handler) serveVirtual(request memapi.Request, user string) (answer runtime.Object, ok bool, err error) {
	gr := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Plural}
	core := gr.Group == "" && slices.Contains([]string{"pods", "services", "nodes"}, gr.Resource)
	switch {
	case core && slices.Contains(kubeletSubresources, request.Subresource):
		return nil, true, notImplemented("the development cluster runs no containers: it does not serve %s/%s",
			gr.Resource, request.Subresource)
	case request.Verb != "create":
		return nil, false, nil
	// The token is requested as a subresource of its service account.
	case gr.String() == "serviceaccounts" && request.Subresource == "token":
		answer, err = h.createToken(request)
	case gr.Group == authorizationv1.GroupName:
		answer, ok, err = reviewAccess(request)
		return answer, ok, err
	case gr.Group == authenticationv1.GroupName:
		answer, ok, err = h.reviewUser(request, user)
		return answer, ok, err
	default:
		return nil, false, nil
	}
	return answer, true, err
}

// parseReview decodes the body of a review.
func parseReview[T any](request memapi.Request) (*T, error) {
	review := new(T)
	if err := json.Unmarshal(request.Body, review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return review, nil
}

// reviewAccess answers access reviews: everything is allowed, because RBAC is off.
func reviewAccess(request memapi.Request) (answer runtime.Object, ok bool, err error) {
	allowed := authorizationv1.SubjectAccessReviewStatus{Allowed: true,
		Reason: "RBAC is off in the development cluster"}
	switch request.Resource.Plural {
	case "selfsubjectaccessreviews":
		review, err := parseReview[authorizationv1.SelfSubjectAccessReview](request)
		if err != nil {
			return nil, true, err
		}
		review.Status = allowed
		return withKind(review, authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview"), true, nil
	case "subjectaccessreviews":
		review, err := parseReview[authorizationv1.SubjectAccessReview](request)
		if err != nil {
			return nil, true, err
		}
		review.Status = allowed
		return withKind(review, authorizationv1.SchemeGroupVersion, "SubjectAccessReview"), true, nil
	case "localsubjectaccessreviews":
		review, err := parseReview[authorizationv1.LocalSubjectAccessReview](request)
		if err != nil {
			return nil, true, err
		}
		review.Status = allowed
		return withKind(review, authorizationv1.SchemeGroupVersion, "LocalSubjectAccessReview"), true, nil
	case "selfsubjectrulesreviews":
		review, err := parseReview[authorizationv1.SelfSubjectRulesReview](request)
		if err != nil {
			return nil, true, err
		}
		every := []string{"*"}
		review.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: every, APIGroups: every, Resources: every}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: every, NonResourceURLs: every}},
		}
		return withKind(review, authorizationv1.SchemeGroupVersion, "SelfSubjectRulesReview"), true, nil
	default:
		return nil, false, nil
	}
}

// withKind sets the apiVersion and kind of an object. Go clients omit them in requests.
func withKind(object runtime.Object, gv schema.GroupVersion, kind string) runtime.Object {
	object.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind))
	return object
}

// reviewUser returns the user of the request, or the user of a token.
func (h *handler) reviewUser(request memapi.Request, user string) (answer runtime.Object, ok bool, err error) {
	switch request.Resource.Plural {
	case "selfsubjectreviews":
		review := &authenticationv1.SelfSubjectReview{}
		review.Status.UserInfo = userInfo(user)
		return withKind(review, authenticationv1.SchemeGroupVersion, "SelfSubjectReview"), true, nil
	case "tokenreviews":
		review, err := parseReview[authenticationv1.TokenReview](request)
		if err != nil {
			return nil, true, err
		}
		// Only tokens of this cluster are valid.
		if name, known := h.tokens.userOf(review.Spec.Token); known {
			review.Status.Authenticated, review.Status.User = true, userInfo(name)
		} else {
			review.Status.Error = "the token is not valid"
		}
		return withKind(review, authenticationv1.SchemeGroupVersion, "TokenReview"), true, nil
	default:
		return nil, false, nil
	}
}

// userInfo returns a user with its groups.
func userInfo(user string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: user, Groups: groupsOf(user)}
}

// createToken issues a token for a service account, for "kubectl create token".
func (h *handler) createToken(request memapi.Request) (runtime.Object, error) {
	tokens, err := parseReview[authenticationv1.TokenRequest](request)
	if err != nil {
		return nil, err
	}
	account := memapi.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	// The token of a missing account would be accepted, so its existence is checked here.
	if h.memory.Object(account, request.Namespace, request.Name) == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: account.Plural}, request.Name)
	}
	if tokens.Spec.ExpirationSeconds == nil {
		tokens.Spec.ExpirationSeconds = ptr.To(int64(defaultTokenLifetime.Seconds()))
	}
	seconds := *tokens.Spec.ExpirationSeconds
	if seconds < minTokenSeconds || seconds > maxTokenSeconds {
		return nil, apierrors.NewInvalid(
			authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), request.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "expirationSeconds"), seconds,
				fmt.Sprintf("must be between %d and %d", minTokenSeconds, int64(maxTokenSeconds)))},
		)
	}
	expires := time.Now().Add(time.Duration(seconds) * time.Second)
	// The user name has the form that the real server uses for service accounts.
	user := fmt.Sprintf("system:serviceaccount:%s:%s", request.Namespace, request.Name)
	tokens.Status = authenticationv1.TokenRequestStatus{
		Token:               h.tokens.issueToken(user, tokens.Spec.Audiences, expires),
		ExpirationTimestamp: metav1.NewTime(expires),
	}
	return withKind(tokens, authenticationv1.SchemeGroupVersion, "TokenRequest"), nil
}

// isProxy reports whether the path leads through a proxy to a pod, a service or a node. Such paths have any number of
// segments:
// /api/v1/namespaces/NAMESPACE/pods/NAME/proxy/… and /api/v1/nodes/NAME/proxy/….
func isProxy(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 4 && parts[2] == "namespaces" {
		parts = slices.Delete(parts, 2, 4)
	}
	return len(parts) > 4 && parts[0] == "api" && parts[4] == "proxy" &&
		slices.Contains([]string{"pods", "services", "nodes"}, parts[2])
}

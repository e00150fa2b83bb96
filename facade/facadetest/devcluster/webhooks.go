package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/reviewing"
)

// errService is the error of a webhook that is configured with a service.
var errService = errors.New("the development cluster has no pods behind services: " +
	"set clientConfig.url of the webhook instead of clientConfig.service")

// maxResponseBytes limits the length of a webhook's answer.
const maxResponseBytes = 8 << 20

// webhookCaller calls the admission webhooks that are configured in the cluster by URL.
type webhookCaller struct{ cluster *Cluster }

// userKey is the context key of a request's user.
type userKey struct{}

// withUser returns the request with its user in the context, for admission reviews.
func withUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

// reviewRequest implements memapi.Reviewer.
func (w webhookCaller) reviewRequest(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error) {
	if request.Resource.Group == admissionregistrationv1.GroupName {
		return nil, nil, nil // a broken webhook configuration must remain removable
	}
	configurations := w.webhookConfigurations()
	if len(configurations) == 0 {
		return nil, nil, nil
	}
	// The user comes from the request's token, and not from the field manager, which memapi reports.
	if user, ok := ctx.Value(userKey{}).(string); ok {
		request.UserInfo = authenticationv1.UserInfo{Username: user, Groups: groupsOf(user)}
	}
	// Package reviewing selects the matching webhooks.
	return reviewing.Reviews{Server: w.cluster.memory, Call: callWebhook, Match: matchConditions}.ReviewRequest(
		ctx, reviewing.HooksOf(configurations), mutating, request,
	)
}

// webhookConfigurations returns the webhook configurations in the order of their names, in which the real server calls
// them. Objects that cannot be decoded are skipped.
func (w webhookCaller) webhookConfigurations() []client.Object {
	var all []client.Object
	for _, content := range w.cluster.memory.ObjectsOf(mutatingWebhooks) {
		one := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if fromContent(content, one) == nil {
			all = append(all, one)
		}
	}
	for _, content := range w.cluster.memory.ObjectsOf(validatingWebhooks) {
		one := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if fromContent(content, one) == nil {
			all = append(all, one)
		}
	}
	return all
}

// fromContent decodes an object into its Go type.
func fromContent(content map[string]any, into runtime.Object) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}

// callWebhook sends the admission request to the URL of a webhook and returns its response.
func callWebhook(
	ctx context.Context, h reviewing.Hook, asked *admissionv1.AdmissionRequest,
) (*admissionv1.AdmissionResponse, error) {
	if h.URL() == "" {
		return nil, errService
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  asked,
	})
	if err != nil {
		return nil, err
	}
	// Webhooks are verified with the authority of their configuration, or with the system's authorities if it is empty.
	transport, err := rest.TransportFor(&rest.Config{
		TLSClientConfig: rest.TLSClientConfig{CAData: h.ClientConfig.CABundle},
	})
	if err != nil {
		return nil, err
	}
	// The timeout is that of the webhook's configuration.
	ctx, cancel := context.WithTimeout(ctx, h.Timeout())
	defer cancel()
	at, err := url.Parse(h.URL())
	if err != nil {
		return nil, err
	}
	// The real server passes its timeout, so that a webhook can give up in time.
	query := at.Query()
	query.Set("timeout", h.Timeout().String())
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", jsonContentType)
	r.Header.Set("Accept", jsonContentType)
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	// The limit protects against endless answers.
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return nil, err
	}
	// The body often explains the failure.
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with %d: %s", response.StatusCode, data)
	}
	review := admissionv1.AdmissionReview{}
	// An answer without a response is a mistake of the webhook.
	if err := json.Unmarshal(data, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("the answer is not a review: %w", errors.Join(err, errNoResponse))
	}
	return review.Response, nil
}

var errNoResponse = errors.New("it must have a response")

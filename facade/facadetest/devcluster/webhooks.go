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

// errService is the failure of a webhook that is behind a service.
var errService = errors.New("the development cluster has no pods behind services: " +
	"set clientConfig.url of the webhook instead of clientConfig.service")

// maxAnswerBytes is how long the answer of a webhook may be.
const maxAnswerBytes = 8 << 20

// webhookCaller calls the admission webhooks that are configured in the cluster, by their URLs.
type webhookCaller struct{ cluster *Cluster }

// userKey is the key of the user in the context of a request.
type userKey struct{}

func withUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

// review is a memapi.Reviewer.
func (w webhookCaller) review(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error) {
	if request.Resource.Group == admissionregistrationv1.GroupName {
		return nil, nil, nil // a broken webhook must not prevent its own removal
	}
	configurations := w.configurations()
	if len(configurations) == 0 {
		return nil, nil, nil
	}
	if user, ok := ctx.Value(userKey{}).(string); ok {
		request.UserInfo = authenticationv1.UserInfo{Username: user, Groups: groupsOf(user)}
	}
	return reviewing.Reviews{Server: w.cluster.memory, Call: callWebhook, Match: matchConditions}.Review(
		ctx, reviewing.HooksOf(configurations), mutating, request,
	)
}

// configurations are in the order of their names, in which the real server calls their webhooks.
func (w webhookCaller) configurations() []client.Object {
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

func fromContent(content map[string]any, into runtime.Object) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}

// callWebhook sends the request to the URL of a webhook.
func callWebhook(
	ctx context.Context, h reviewing.Hook, asked *admissionv1.AdmissionRequest,
) (*admissionv1.AdmissionResponse, error) {
	if h.URL == "" {
		return nil, errService
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  asked,
	})
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: h.Authority}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	at, err := url.Parse(h.URL)
	if err != nil {
		return nil, err
	}
	query := at.Query()
	query.Set("timeout", h.Timeout.String())
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", jsonForm)
	r.Header.Set("Accept", jsonForm)
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with %d: %s", response.StatusCode, data)
	}
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(data, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("the answer is not a review: %w", errors.Join(err, errNoResponse))
	}
	return review.Response, nil
}

var errNoResponse = errors.New("it must have a response")

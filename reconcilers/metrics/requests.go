package metrics

import (
	"fmt"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/requests"
)

// Around counts the requests that are sent by the transport, by Kubernetes' verb, and by the class of the answer: 2xx,
// 4xx, 5xx and so on, or "error" if there was none.
func (o *Operator) Around(next http.RoundTripper) http.RoundTripper {
	if o.off() {
		return next
	}
	return &counting{operator: o, next: next}
}

type counting struct {
	operator *Operator
	next     http.RoundTripper
}

// RoundTrip sends the request, and counts it when it is answered.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = fmt.Sprintf("%dxx", response.StatusCode/100)
	}
	c.operator.requests.WithLabelValues(c.operator.name, requests.Of(r).Verb, code).Inc()
	return response, err
}

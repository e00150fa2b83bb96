package metrics

import (
	"fmt"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// Around counts the requests that are sent by the transport, by Kubernetes' verb, and by the class of the answer: 2xx,
// 4xx, 5xx and so on, or "error" if there was none.
func (o *Operator) Around(next transport.RoundTripFunc) transport.RoundTripFunc {
	if o.off() {
		return next
	}
	return func(r *http.Request) (*http.Response, error) {
		response, err := next(r)
		code := "error"
		if err == nil {
			code = fmt.Sprintf("%dxx", response.StatusCode/100)
		}
		o.requests.WithLabelValues(o.name, APIRequestOf(r).Verb, code).Inc()
		return response, err
	}
}

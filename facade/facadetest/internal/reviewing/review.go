package reviewing

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Call sends a request to one webhook.
type Call func(ctx context.Context, h Hook, asked *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

// Review sends a request to the webhooks that it is for, one after the other, as a [memapi.Reviewer] does.
func Review(
	ctx context.Context, server *memapi.Server, hooks []Hook, mutating bool, request *admissionv1.AdmissionRequest,
	call Call,
) (object []byte, warnings []string, err error) {
	asked := *request
	for _, h := range hooks {
		if h.mutating != mutating || !h.isFor(&asked, server) {
			continue
		}
		response, err := call(ctx, h, &asked)
		switch {
		case err != nil && h.ignores:
			continue
		case err != nil:
			return nil, warnings, h.failure(err)
		}
		warnings = append(warnings, response.Warnings...)
		if !response.Allowed {
			return nil, warnings, h.denial(response.Result)
		}
		if len(response.Patch) == 0 {
			continue
		}
		if asked.Object.Raw, err = patched(asked.Object.Raw, response.Patch); err != nil {
			return nil, warnings, h.failure(err)
		}
		object = asked.Object.Raw
	}
	return object, warnings, nil
}

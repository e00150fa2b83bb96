package controller

import (
	"context"
	"net/http"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// longest is the maximum length of a title in bytes.
const maxTitleLength = 40

// RegisterAdmission adds a check of guestbooks before they are stored, beside the project's own webhooks.
func RegisterAdmission(op *kopf.Operator) {
	guestbooks := kopf.For(op, &webappv1.Guestbook{})
	guestbooks.Validate("title", func(_ context.Context, a *kopf.Admission[*webappv1.Guestbook]) error {
		if length := len(a.Object.Spec.Title); length > maxTitleLength {
			return kopf.Deny(http.StatusUnprocessableEntity, "a title of %d bytes is longer than %d", length,
				maxTitleLength)
		}
		return nil
	}, kopf.Operations("CREATE", "UPDATE"))
}

// AdmissionSettings returns settings by which the manager's webhook server serves the handlers. The operator maintains
// its own webhook configurations beside those in config/webhook. The URL is for managers outside of the cluster.
func AdmissionSettings(url, ca string) kopf.AdmissionSettings {
	own := kopf.AdmissionSettings{Managed: "guestbooks.example.org", URL: url, CAFile: ca}
	if url == "" {
		own.Service = "guestbook-system/guestbook-webhook-service"
	}
	return own
}

package v1

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
)

// +kubebuilder:webhook:path=/mutate-webapp-example-org-v1-guestbook,mutating=true,failurePolicy=fail,sideEffects=None,groups=webapp.example.org,resources=guestbooks,verbs=create;update,versions=v1,name=mguestbook-v1.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-webapp-example-org-v1-guestbook,mutating=false,failurePolicy=fail,sideEffects=None,groups=webapp.example.org,resources=guestbooks,verbs=create;update,versions=v1,name=vguestbook-v1.kb.io,admissionReviewVersions=v1

// SetupGuestbookWebhookWithManager registers the project's own webhooks of guestbooks.
func SetupGuestbookWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webappv1.Guestbook{}).
		WithDefaulter(guestbookDefaulter{}).
		WithValidator(guestbookValidator{}).
		Complete()
}

// guestbookDefaulter gives each guestbook a moderator.
type guestbookDefaulter struct{}

var _ admission.Defaulter[*webappv1.Guestbook] = guestbookDefaulter{}

// Default adds a moderator to guestbooks without one.
func (guestbookDefaulter) Default(_ context.Context, guestbook *webappv1.Guestbook) error {
	if len(guestbook.Spec.Moderators) == 0 {
		guestbook.Spec.Moderators = []string{"admin"}
	}
	return nil
}

// guestbookValidator refuses moderators without a name.
type guestbookValidator struct{}

var _ admission.Validator[*webappv1.Guestbook] = guestbookValidator{}

// ValidateCreate checks the moderators.
func (guestbookValidator) ValidateCreate(_ context.Context, g *webappv1.Guestbook) (admission.Warnings, error) {
	if at := slices.Index(g.Spec.Moderators, ""); at >= 0 {
		return nil, fmt.Errorf("spec.moderators[%d] has no name", at)
	}
	return nil, nil
}

// ValidateUpdate checks the moderators, too.
func (v guestbookValidator) ValidateUpdate(ctx context.Context, _, g *webappv1.Guestbook) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, g)
}

// ValidateDelete is not called: the webhook is for creations and updates.
func (guestbookValidator) ValidateDelete(context.Context, *webappv1.Guestbook) (admission.Warnings, error) {
	return nil, errors.New("not to be called")
}

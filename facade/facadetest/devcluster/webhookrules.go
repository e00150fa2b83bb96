package devcluster

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// webhookEntry holds the fields that entries of both kinds of webhook configurations have in common.
type webhookEntry struct {
	name       string
	client     admissionregistrationv1.WebhookClientConfig
	effects    *admissionregistrationv1.SideEffectClass
	versions   []string
	conditions []admissionregistrationv1.MatchCondition
}

// validateWebhooks validates webhook configurations with the messages of the real server. It checks for the mistakes
// that clients are likely to make, and implements memapi.Admission.Validate.
func validateWebhooks(of memapi.Resource, object map[string]any) error {
	var entries []webhookEntry
	switch of.Plural {
	case mutatingWebhooks.Plural:
		all := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := fromContent(object, all); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		for _, h := range all.Webhooks {
			entries = append(entries, webhookEntry{
				h.Name, h.ClientConfig, h.SideEffects, h.AdmissionReviewVersions, h.MatchConditions,
			})
		}
	case validatingWebhooks.Plural:
		all := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := fromContent(object, all); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		for _, h := range all.Webhooks {
			entries = append(entries, webhookEntry{
				h.Name, h.ClientConfig, h.SideEffects, h.AdmissionReviewVersions, h.MatchConditions,
			})
		}
	}
	var problems field.ErrorList
	for i, one := range entries {
		problems = append(problems, one.validateEntry(field.NewPath("webhooks").Index(i))...)
	}
	if len(problems) > 0 {
		return apierrors.NewInvalid(
			schema.GroupKind{Group: of.Group, Kind: of.Kind}, at(object, "metadata", "name"), problems,
		)
	}
	return nil
}

// validateEntry returns the problems of one entry.
func (e webhookEntry) validateEntry(path *field.Path) (problems field.ErrorList) {
	const classes = "must specify one of None, NoneOnDryRun"
	problems = append(problems, validation.IsFullyQualifiedName(path.Child("name"), e.name)...)
	if len(e.versions) == 0 {
		problems = append(problems, field.Required(
			path.Child("admissionReviewVersions"), "must specify one of v1, v1beta1",
		))
	}
	// The real server requires the field, and rejects the older values Some and Unknown.
	switch {
	case e.effects == nil:
		problems = append(problems, field.Required(path.Child("sideEffects"), classes))
	case *e.effects != admissionregistrationv1.SideEffectClassNone &&
		*e.effects != admissionregistrationv1.SideEffectClassNoneOnDryRun:
		problems = append(problems, field.NotSupported(path.Child("sideEffects"), *e.effects,
			[]string{"None", "NoneOnDryRun"}))
	}
	client := path.Child("clientConfig")
	switch {
	// Both or neither of them are set.
	case (e.client.URL == nil) == (e.client.Service == nil):
		problems = append(problems, field.Required(client, "exactly one of url or service is required"))
	case e.client.URL != nil:
		problems = append(problems, webhook.ValidateWebhookURL(client.Child("url"), *e.client.URL, true)...)
	}
	// A condition that does not compile would make every matching request fail.
	compiler := cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	for i, one := range e.conditions {
		result := compiler.CompileCELExpression(
			&matchconditions.MatchCondition{Name: one.Name, Expression: one.Expression},
			cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions,
		)
		if result.Error != nil {
			problems = append(problems, field.Invalid(path.Child("matchConditions").Index(i).Child("expression"),
				one.Expression, fmt.Sprint(result.Error.Detail)))
		}
	}
	return problems
}

package configurations

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigurationObjects returns the two objects with only these hooks, for users who apply them by other means. An
// object without entries is left out.
func ConfigurationObjects(
	name string, hooks []Hook, server admissionregistrationv1.WebhookClientConfig, f Form,
) ([]client.Object, error) {
	validating, err := ValidatingEntries(hooks, server, f)
	if err != nil {
		return nil, err
	}
	mutating, err := MutatingEntries(hooks, server, f)
	if err != nil {
		return nil, err
	}
	// Printed objects need apiVersion and kind, which typed objects otherwise lack.
	version := admissionregistrationv1.SchemeGroupVersion.String()
	var all []client.Object
	if len(validating) > 0 {
		all = append(all, &admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: validatingKind.Kind},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: validating,
		})
	}
	if len(mutating) > 0 {
		all = append(all, &admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: mutatingKind.Kind},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: mutating,
		})
	}
	return all, nil
}

package configurations

import (
	"cmp"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Timeout is how long the API server waits for an answer, in seconds: as long as it can. Kopf: the same.
const Timeout = 30

// Form says how entries look.
type Form struct {
	// Suffix is what the names of all entries end with. Under AsKopf, it is the name of the two objects; else the name
	// of the operator is a good one, as several operators may share the objects.
	Suffix string
	// AsKopf makes the entries as Kopf has them: with names that the API server may refuse, and without conditions.
	AsKopf bool
	// Conditions puts those of the hooks into the entries, so that requests which do not meet them are not even sent.
	Conditions bool
	// PersistentOnly leaves out what does not outlive the operator.
	PersistentOnly bool
}

// Validating makes the entries of the validating handlers among the hooks, in their order; never nil. The client
// configuration says where the server is: to its URL or the path of its service, or both, the path of the handler is
// added. Two entries of one name are an error, for the API server refuses them.
func Validating(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form,
) ([]admissionregistrationv1.ValidatingWebhook, error) {
	return f.entries(hooks, client, false)
}

// Mutating does the same for the mutating handlers.
func Mutating(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form,
) ([]admissionregistrationv1.MutatingWebhook, error) {
	entries, err := plain(hooks, client, f, true)
	all := make([]admissionregistrationv1.MutatingWebhook, len(entries))
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &all[i]); err != nil {
			return nil, fmt.Errorf("decoding a mutating entry: %w", err)
		}
	}
	return all, err
}

// entries are those of one type, as the validating ones are written.
func (f Form) entries(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, mutating bool,
) ([]admissionregistrationv1.ValidatingWebhook, error) {
	all := make([]admissionregistrationv1.ValidatingWebhook, 0, len(hooks))
	taken := map[string]string{}
	for _, hook := range hooks {
		if hook.Mutating != mutating || (f.PersistentOnly && !hook.Persistent) {
			continue
		}
		entry := f.entry(hook, client)
		if other, is := taken[entry.Name]; is {
			return nil, fmt.Errorf("the handlers %q and %q would both have the name %q in the webhook configuration: "+
				"give one of them another id", other, hook.name(), entry.Name)
		}
		taken[entry.Name] = hook.name()
		all = append(all, entry)
	}
	return all, nil
}

// entry is one entry: all that the two types of them have in common, which is all but the policy of reinvocation.
func (f Form) entry(
	h Hook, client admissionregistrationv1.WebhookClientConfig,
) admissionregistrationv1.ValidatingWebhook {
	entry := admissionregistrationv1.ValidatingWebhook{
		Name: f.name(h.name()), ClientConfig: at(client, h.path()), Rules: h.rules(f),
		FailurePolicy:  ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:    ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:    ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(cmp.Or(h.Timeout, Timeout)), AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
	if h.IgnoreFailures {
		entry.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	if h.SideEffects {
		entry.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	}
	if len(h.Labels) > 0 {
		entry.ObjectSelector = &metav1.LabelSelector{MatchExpressions: h.Labels}
	}
	if len(h.Namespaces) > 0 {
		entry.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: h.Namespaces}
	}
	if f.Conditions && !f.AsKopf {
		entry.MatchConditions = h.Conditions
	}
	return entry
}

// plain are the entries of one type as JSON has them.
func plain(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form, mutating bool,
) ([]any, error) {
	entries, err := f.entries(hooks, client, mutating)
	all := make([]any, 0, len(entries))
	for i := range entries {
		fields, wrong := runtime.DefaultUnstructuredConverter.ToUnstructured(&entries[i])
		if wrong != nil {
			return nil, fmt.Errorf("encoding the entry %q: %w", entries[i].Name, wrong)
		}
		all = append(all, fields)
	}
	return all, err
}

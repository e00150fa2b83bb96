package configurations

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Timeout is how many seconds the API server waits for a response. It is the maximum that Kubernetes allows. Kopf: the
// same.
const Timeout = 30

// Form is the form of the entries.
type Form struct {
	// Suffix is the end of all entries' names. With AsKopf, it is the name of the two objects. Otherwise, the name of
	// the operator is suitable, because several operators may share the objects.
	Suffix string
	// AsKopf creates the entries exactly as Kopf does: with names that the API server may reject, and without
	// conditions.
	AsKopf bool
	// Conditions adds the conditions of the hooks to the entries, so that the API server does not send other requests.
	Conditions bool
	// PersistentOnly leaves out the entries that must not outlive the operator.
	PersistentOnly bool
}

// ValidatingEntries returns the entries of the validating handlers among the hooks, in their order, and never nil. The
// client configuration is the address of the server. The path of each handler is appended to its URL or to the path of
// its Service. Two entries with the same name are an error, because the API server rejects them.
func ValidatingEntries(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form,
) ([]admissionregistrationv1.ValidatingWebhook, error) {
	return f.entriesOfType(hooks, client, false)
}

// MutatingEntries returns the entries of the mutating handlers in the same way.
func MutatingEntries(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form,
) ([]admissionregistrationv1.MutatingWebhook, error) {
	// Both types have the same JSON except for reinvocationPolicy, which is not set.
	entries, err := unstructuredEntries(hooks, client, f, true)
	all := make([]admissionregistrationv1.MutatingWebhook, len(entries))
	for i, entry := range entries {
		fields, _ := entry.(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &all[i]); err != nil {
			return nil, fmt.Errorf("decoding a mutating entry: %w", err)
		}
	}
	return all, err
}

// entriesOfType returns the entries of one type, with the Go type of validating ones.
func (f Form) entriesOfType(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, mutating bool,
) ([]admissionregistrationv1.ValidatingWebhook, error) {
	all := make([]admissionregistrationv1.ValidatingWebhook, 0, len(hooks))
	// taken maps the names of entries to those of their hooks, for the error.
	taken := map[string]string{}
	for _, hook := range hooks {
		if hook.Mutating != mutating || (f.PersistentOnly && !hook.Persistent) {
			continue
		}
		entry := f.newEntry(hook, client)
		if other, is := taken[entry.Name]; is {
			return nil, fmt.Errorf("the handlers %q and %q would both have the name %q in the webhook configuration: "+
				"give one of them another id", other, hook.baseName(), entry.Name)
		}
		taken[entry.Name] = hook.baseName()
		all = append(all, entry)
	}
	return all, nil
}

// newEntry returns one entry. The two types of entries differ only in reinvocationPolicy.
func (f Form) newEntry(
	h Hook, client admissionregistrationv1.WebhookClientConfig,
) admissionregistrationv1.ValidatingWebhook {
	// The defaults equal Kopf's. Equivalent also matches requests for other versions of the resource, which the API
	// server converts.
	entry := admissionregistrationv1.ValidatingWebhook{
		Name: f.entryName(h.baseName()), ClientConfig: clientConfigAt(client, h.pathOrID()), Rules: h.webhookRules(f),
		FailurePolicy:  ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:    ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:    ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(cmp.Or(h.Timeout, Timeout)), AdmissionReviewVersions: []string{"v1", "v1beta1"},
	}
	// By default, a request is rejected while the server cannot be reached.
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
	// Kopf's entries do not have conditions.
	if f.Conditions && !f.AsKopf {
		entry.MatchConditions = h.Conditions
	}
	return entry
}

// unstructuredEntries returns the entries of one type as JSON values.
func unstructuredEntries(
	hooks []Hook, client admissionregistrationv1.WebhookClientConfig, f Form, mutating bool,
) ([]any, error) {
	entries, err := f.entriesOfType(hooks, client, mutating)
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

// clientConfigAt returns the client configuration for one path on the server. It does not change the given one.
func clientConfigAt(
	client admissionregistrationv1.WebhookClientConfig, below string,
) admissionregistrationv1.WebhookClientConfig {
	path := escapePath(below)
	// As in Kopf, trailing slashes of a URL are removed, but not those of a Service's path.
	if client.URL != nil {
		client.URL = ptr.To(strings.TrimRight(*client.URL, "/") + "/" + path)
	}
	if client.Service != nil {
		service := *client.Service
		service.Path = ptr.To(ptr.Deref(service.Path, "") + "/" + path)
		client.Service = &service
	}
	return client
}

// queryToPath corrects the two characters in which url.QueryEscape differs from Kopf: it also escapes slashes, and
// replaces each space by a plus.
var queryToPath = strings.NewReplacer("%2F", "/", "+", "%20")

// escapePath escapes a path as Kopf does: all bytes except for ASCII letters, digits and "_.-~/".
func escapePath(plain string) string { return queryToPath.Replace(url.QueryEscape(plain)) }

package kopf_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var (
	secrets            = memapi.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	validatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Plural: "validatingwebhookconfigurations", Plain: true,
	}
	mutatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration",
		Plural: "mutatingwebhookconfigurations", Plain: true,
	}
	definitionResource = memapi.Resource{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		Plural: "customresourcedefinitions",
	}
)

// widgetDefinition is the CRD of widgets.
func widgetDefinition() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "widgets.example.org", "uid": "1"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names":    map[string]any{"kind": "Widget", "plural": "widgets", "singular": "widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}
}

// certificateServer is a webhook server without a port that accepts a certificate callback.
type certificateServer struct {
	*portlessServer
	getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

func (c *certificateServer) SetGetCertificate(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) {
	c.getCertificate = get
}

// clusterProgram is an operator that runs as a program in a cluster.
type clusterProgram struct {
	*certificateServer
	api  *memapi.Server
	stop func() error
}

// startProgram starts an operator on virtual time, as Main does.
func startProgram(t *testing.T, api *memapi.Server, op *kopf.Operator) clusterProgram {
	t.Helper()
	p := clusterProgram{&certificateServer{portlessServer: &portlessServer{http.NewServeMux()}}, api, nil}
	p.stop = startAsProgram(t, api, op, func(o *ctrl.Options) { o.WebhookServer = p.certificateServer })
	return p
}

// startAsProgram starts an operator in a manager as Main does.
func startAsProgram(
	t *testing.T, server http.RoundTripper, op *kopf.Operator, change ...func(o *ctrl.Options),
) (stop func() error) {
	t.Helper()
	m := managerOn(t, server, change...)
	err := kopf.StartUp(t.Context(), op)
	if err == nil {
		err = kopf.SetUpAsProgram(op, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startManager(t, m)
}

// newAdmissionAPI returns an API server with the resources that admission needs, but without widgets.
func newAdmissionAPI() *memapi.Server {
	api := memapi.New()
	for _, resource := range []memapi.Resource{secrets, validatingResource, mutatingResource, definitionResource} {
		api.Install(resource)
	}
	return api
}

// stored returns an object of the API server.
func stored[T any](t *testing.T, api *memapi.Server, resource memapi.Resource, namespace, name string) (object T) {
	t.Helper()
	data, err := json.Marshal(api.Object(resource, namespace, name))
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// entries returns the entries of a webhook configuration by name. Both kinds of configurations have the same
// fields.
func (p clusterProgram) entries(t *testing.T, of memapi.Resource) map[string]admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	all := map[string]admissionregistrationv1.ValidatingWebhook{}
	read := stored[admissionregistrationv1.ValidatingWebhookConfiguration](t, p.api, of, "", "shared.example.org")
	for _, entry := range read.Webhooks {
		all[entry.Name] = entry
	}
	return all
}

// names returns the sorted names of all entries.
func (p clusterProgram) names(t *testing.T, of memapi.Resource) []string {
	return slices.Sorted(maps.Keys(p.entries(t, of)))
}

// foreignConfiguration returns a validating configuration with an entry of another client.
func foreignConfiguration() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "shared.example.org"},
		"webhooks": []any{map[string]any{"name": "their.own.entry"}},
	}
}

// newManagedOperator returns an operator behind a Service with admission handlers of all types.
func newManagedOperator() *kopf.Operator {
	op := kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: "shared.example.org", Service: "team-a/webhook:8443", ExtraHosts: []string{"proxy.example.org"},
	}})
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("Quota", func(context.Context, *Admission) error { return kopf.Deny(403, "no") })
	widgets.Validate("guard", registerAdmission, kopf.Persistent())
	widgets.Validate("parts", registerAdmission, kopf.Subresource("*"))
	widgets.Mutate("defaults", registerAdmission)
	return op
}

// TestManagedAdmission shows the life cycle of managed admission: the certificate and the configurations are
// created, follow the kinds, and are removed at the exit, except for persistent entries. Deviations:
// D-webhook-names, D-webhook-sharing, D-mutating-rules and D-subresource-star.
func TestManagedAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAdmissionAPI()
		api.Put(validatingResource, foreignConfiguration())
		p := startProgram(t, api, newManagedOperator())
		time.Sleep(5 * time.Second)
		guard := p.entries(t, validatingResource)["guard.test.example.org"]
		secret := stored[corev1.Secret](t, api, secrets, "team-a", "webhook-certificate")
		if len(guard.ClientConfig.CABundle) == 0 || !strings.Contains(
			string(guard.ClientConfig.CABundle), string(secret.Data[corev1.TLSCertKey])) {
			t.Errorf("the entry has the certificate of the Secret: got %+v", guard.ClientConfig)
		}
		for _, host := range []string{"webhook.team-a.svc", "proxy.example.org"} {
			if used, err := p.getCertificate(nil); err != nil || used.Leaf.VerifyHostname(host) != nil {
				t.Errorf("the webhook server uses a certificate for %s: got %+v, %v", host, used, err)
			}
		}
		marked := stored[admissionregistrationv1.ValidatingWebhookConfiguration](
			t, api, validatingResource, "", "shared.example.org")
		if len(marked.Annotations["test.example.org/certificates"]) != 64 {
			t.Errorf("an annotation records the fingerprint of the certificate: got %v", marked.Annotations)
		}
		way := guard.ClientConfig.Service
		if way == nil || fmt.Sprint(way.Namespace, way.Name, *way.Port, *way.Path) !=
			fmt.Sprint("team-a", "webhook", 8443, "/test.example.org/validate/guard") {
			t.Errorf("the entry has the Service and the path of the handler: got %+v", way)
		}
		if len(guard.Rules) != 0 {
			t.Errorf("an entry of an unknown kind has no rules: got %v", guard.Rules)
		}
		api.Put(definitionResource, widgetDefinition())
		time.Sleep(30 * time.Second)
		wantEntries(t, p)
		if status, verdict := p.post(t, "/test.example.org/validate/Quota", request(nil)); status != 200 ||
			verdict.Allowed {
			t.Errorf("the webhook server calls the handler: got %d, %+v", status, verdict)
		}
		api.Delete(definitionResource, "", "widgets.example.org")
		time.Sleep(30 * time.Second)
		if rules := p.entries(t, validatingResource)["guard.test.example.org"].Rules; len(rules) != 0 {
			t.Errorf("removing the CRD removes the rules: got %v", rules)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		want := []string{"guard.test.example.org", "their.own.entry"}
		if d := cmp.Diff(want, p.names(t, validatingResource)); d != "" {
			t.Errorf("the exit keeps persistent entries and entries of other clients: -want, +got:\n%s", d)
		}
		if got := p.names(t, mutatingResource); len(got) != 0 {
			t.Errorf("the exit removes all other entries: got %q", got)
		}
	})
}

// wantEntries checks the entries while the kind of widgets exists.
func wantEntries(t *testing.T, p clusterProgram) {
	t.Helper()
	all := p.entries(t, validatingResource)
	for name, entry := range all {
		if strings.ToLower(name) != name || strings.HasSuffix(name, "test.example.org") && len(entry.Rules) != 1 {
			t.Errorf("each entry has a lower-case name, and each entry of the operator has one rule: got %q with %v",
				name, entry.Rules)
		}
	}
	if _, there := all["their.own.entry"]; !there || len(all) != 4 {
		t.Errorf("entries of the operator are added to those of other clients: got %q", p.names(t, validatingResource))
	}
	parts := all["parts.test.example.org"].Rules[0].Resources
	if d := cmp.Diff([]string{"widgets", "widgets/*"}, parts); d != "" {
		t.Errorf("the subresource * includes the main resource: -want, +got:\n%s", d)
	}
	defaults := p.entries(t, mutatingResource)["defaults.test.example.org"].Rules[0].Operations
	if slices.Contains(defaults, admissionregistrationv1.Delete) || slices.Contains(defaults, "*") {
		t.Errorf("an entry of a mutating handler has no DELETE operation: got %q", defaults)
	}
}

// TestManagedAdmissionWithoutHandlers shows that an operator without admission handlers removes the entries of its
// former version. Otherwise the API server would send requests to an endpoint that no longer exists. Deviation:
// D-webhook-withdrawal.
func TestManagedAdmissionWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAdmissionAPI()
		api.Put(validatingResource, foreignConfiguration())
		p := startProgram(t, api, newManagedOperator())
		time.Sleep(5 * time.Second)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if len(p.names(t, validatingResource)) != 2 {
			t.Errorf("a persistent entry and the entry of another client are kept: got %q",
				p.names(t, validatingResource))
		}
		later := startProgram(t, api, kopf.New("test.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
			Managed: "shared.example.org", Service: "team-a/webhook:8443",
		}}))
		time.Sleep(5 * time.Second)
		if d := cmp.Diff([]string{"their.own.entry"}, later.names(t, validatingResource)); d != "" {
			t.Errorf("all entries of the former version are removed: -want, +got:\n%s", d)
		}
		if err := later.stop(); err != nil {
			t.Error(err)
		}
		object := stored[admissionregistrationv1.ValidatingWebhookConfiguration](
			t, api, validatingResource, "", "shared.example.org")
		if len(object.Annotations) > 0 || len(object.Webhooks) != 1 {
			t.Errorf("the annotation of the operator is removed: got %+v", object)
		}
	})
}

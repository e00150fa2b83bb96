// Command 15-admission checks and changes websites before they are stored.
package main

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Admission is one request for one website.
type Admission = kopf.Admission[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{v1.AddToScheme},
		// The API server is a process on this machine. In a cluster, Service replaces the last two fields.
		Admission: kopf.AdmissionSettings{
			Managed: "websites.example.org", URL: "https://localhost:9443", SelfSigned: true,
		},
	})
	websites := kopf.For(op, &v1.Website{})
	websites.Mutate("trim", trim)
	websites.Validate("title", checkTitle, kopf.Operations("CREATE", "UPDATE"))
	websites.Validate("protection", protect, kopf.Operations("DELETE"))
	return op
}

// trim changes the object of the request.
func trim(_ context.Context, a *Admission) error {
	a.Object.Spec.Title = strings.TrimSpace(a.Object.Spec.Title)
	return nil
}

// checkTitle gets the object with the changes of trim. An error denies the request.
func checkTitle(ctx context.Context, a *Admission) error {
	title := a.Object.Spec.Title
	log.FromContext(ctx).Info("Checked", "title", title)
	if strings.Contains(title, "<") {
		return kopf.Deny(http.StatusForbidden, "the title %q contains HTML", title)
	}
	if len(title) > 20 {
		a.Warning("long titles are cut in search results")
	}
	return nil
}

// protect gets the object that is to be deleted.
func protect(_ context.Context, a *Admission) error {
	if a.Object.Labels["protected"] != "" {
		return kopf.Deny(http.StatusForbidden, "%s is protected: remove the label first", a.Name)
	}
	return nil
}

// Command secrets shares secrets: it copies each secret, with a config map and the pull secrets of service accounts, to
// all namespaces that match a selector. It copies it again when the secret or the set of namespaces changes.
package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is a change of a SharedSecret, which does not have a Go type.
type Change = kopf.Change[*kopf.Unstructured]

// retryPolicy is for handlers that wait for other objects, such as a namespace or a service account.
var retryPolicy = kopf.JoinOptions(kopf.Timeout(time.Hour), kopf.Backoff(5*time.Second))

func main() {
	op := kopf.New("secrets.kopf.dev")
	register(op)
	kopf.Main(op)
}

// register registers handlers for three kinds. Those of secrets and namespaces only wake the shares concerned; the
// handlers of shares do all the work.
func register(op *kopf.Operator) {
	shares := kopf.ForResource(op, "sharedsecrets.secrets.example.org").Redacted("spec.literals")
	sources, namespaces := kopf.For(op, &corev1.Secret{}), kopf.For(op, &corev1.Namespace{})

	d := &directory{
		namespaces: kopf.NewIndex(namespaces, "namespaces", namespaceOf),
		shares:     kopf.NewIndex(shares, "shares", shareOf),
	}
	shares.On("copy", kopf.CreateUpdateResume(), d.copy)
	shares.OnDelete("clean", d.clean)

	isShared := func(_ context.Context, s *corev1.Secret) bool { return d.shares.Has(keyOf(s)) }
	sources.When(isShared).OnField("refresh", "data", d.refresh, retryPolicy)
	namespaces.OnEvent("follow", d.follow)

	// The requests of handlers by Client, for the command manifests.
	op.Needs(
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"},
			Verbs: []string{"get", "create", "patch", "deletecollection"},
		},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "patch"},
		},
	)
}

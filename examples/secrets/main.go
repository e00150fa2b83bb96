// Command secrets shares secrets: each is copied to all namespaces that a selector means, with what belongs to it, and
// copied again when it changes, or when there are other namespaces.
package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one of a SharedSecret, which has no Go type.
type Change = kopf.Change[*kopf.Unstructured]

// patient is for all that waits for others: for a namespace that comes or goes, or for a service account.
var patient = kopf.JoinOptions(kopf.Timeout(time.Hour), kopf.Backoff(5*time.Second))

func main() {
	op := kopf.New("secrets.kopf.dev")
	register(op)
	kopf.Main(op)
}

// register has three kinds: the secrets to be shared and the namespaces wake the shares that they belong to, and the
// handlers of these do all the work.
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
	sources.When(isShared).OnField("refresh", "data", d.refresh, patient)
	namespaces.OnEvent("follow", d.follow)
}

package main

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// The same operator runs against a real API server, in real time. This finds differences to the API server in memory.
// The server is that of envtest, or that of the current cluster. The test uses gomega.
func TestInACluster(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" && os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		t.Skip("there is no cluster: set KUBEBUILDER_ASSETS to the folder of `make assets`, " +
			"or USE_EXISTING_CLUSTER=true for that of kubectl")
	}
	g := NewWithT(t)
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{"../../config/crd/kopfexamples.yaml"}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 5 * time.Minute,
	}
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	people, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	street := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "street-"}}
	g.Expect(people.Create(t.Context(), street)).To(Succeed())
	t.Cleanup(func() { g.Expect(people.Delete(context.WithoutCancel(t.Context()), street)).To(Succeed()) })

	sent := &recordingPost{}
	op := newOperator(sent, kopf.Settings{Namespaces: []string{street.Name}})
	r := facadetest.Start(t, op, facadetest.Against(config))
	r.Ready()
	ann := example(map[string]any{"field": "High Street"})
	ann.SetNamespace(street.Name)
	g.Expect(people.Create(t.Context(), ann)).To(Succeed())

	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: street.Name, Name: "ann-letter"}}
	g.Eventually(func() error { return people.Get(t.Context(), client.ObjectKeyFromObject(copied), copied) }).
		WithTimeout(time.Minute).Should(Succeed())
	g.Expect(copied.Data).To(HaveKeyWithValue("text", "Dear ann, you are one of 1 here"))

	g.Expect(people.Delete(t.Context(), ann)).To(Succeed())
	r.Await("farewell", time.Minute)
	g.Eventually(func() bool {
		return apierrors.IsNotFound(people.Get(t.Context(), client.ObjectKeyFromObject(ann), ann))
	}).WithTimeout(time.Minute).Should(BeTrue())
	g.Expect(r.Stop()).To(Succeed())
	g.Expect(r.ExitCode()).To(BeZero())
	g.Expect(sent.letters).To(Equal([]string{
		"High Street: Dear ann, you are one of 1 here", "High Street: Farewell, ann",
	}))
}

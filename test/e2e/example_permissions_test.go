package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The specs run on demand: make explore NAME=permissions.
var _ = Describe("Every example under its generated permissions", Ordered, ContinueOnFailure, func() {
	var figures []string
	for _, e := range examplePrograms() {
		It(e.name, func(ctx context.Context) {
			if e.skipped != "" {
				figures = append(figures, fmt.Sprintf("%-24s not played: %s", e.name, e.skipped))
				Skip(e.skipped)
			}
			figures = append(figures, e.name+" failed")
			figures[len(figures)-1] = e.playPermitted(ctx)
		})
	}
	AfterAll(func() { fmt.Println("\n" + strings.Join(figures, "\n")) })
})

// playPermitted plays the example with its generated permissions, and then without one of the rules. It returns the
// figures.
func (e exampleProgram) playPermitted(ctx context.Context) string {
	GinkgoHelper()
	e.installKinds()
	ns := namespace(ctx)
	args := append(e.arguments(ns), "--operator-namespace", cmp.Or(e.leases, ns), "--only", "rbac",
		"--kubeconfig", kubeconfigPath())
	rights := grantGenerated(ctx, printed(ctx, e.folder, args...))
	r := exampleRun{
		folder: e.folder, namespace: ns, env: []string{"KUBECONFIG=" + userOf(ctx, rights.user, nil)},
		args: e.arguments(ns), beforeExit: func() {},
	}
	if story := e.story(); story != nil {
		r.play(ctx, story)
	} else {
		r.playSession(ctx, e)
	}
	total, refused := auditedRequests(rights.user)
	Expect(total).To(BeNumerically(">", 0))
	Expect(refused).To(BeEmpty(), "the permissions suffice for everything that the example does")

	omitted := e.omitted
	if omitted == "" {
		omitted = e.resource()
	}
	rights.omit(ctx, ns, omitted)
	run(build(e.folder), r.env, r.args...)
	e.createAgain(ctx, ns)
	Eventually(refusedRequests).WithArguments(rights.user).ShouldNot(BeEmpty(), "without "+omitted)
	return fmt.Sprintf("%-24s requests %4d, refused 0; without %s: %s",
		e.name, total, omitted, refusedRequests(rights.user)[0])
}

// createAgain creates the objects of an example, unless they exist.
func (e exampleProgram) createAgain(ctx context.Context, ns string) {
	GinkgoHelper()
	e.applyFiles(ctx, ns)
	// For a moment, the API server still calls the webhooks of the program that has stopped.
	Eventually(func() error { return client.IgnoreAlreadyExists(api.Create(ctx, e.object(ns))) }).Should(Succeed())
}

// applyFiles applies the files of the story, except those that it removes: without kube-controller-manager, namespaces
// stay terminating.
func (e exampleProgram) applyFiles(ctx context.Context, ns string) {
	GinkgoHelper()
	story := e.story()
	for i, s := range story {
		isRemoved := slices.ContainsFunc(story[i:], func(later step) bool {
			return later.verb == "remove" && later.argument == s.argument
		})
		if s.verb == "apply" && !isRemoved {
			applyOrRemoveFile(ctx, s.verb, filepath.Join(e.folder, s.argument), ns)
		}
	}
}

// object returns the object of the example. Those of two lessons have a kind of their own.
func (e exampleProgram) object(ns string) *unstructured.Unstructured {
	GinkgoHelper()
	for _, name := range []string{"site.yaml", "login.yaml"} {
		if file := filepath.Join(e.folder, name); exists(file) {
			return read(file, ns)
		}
	}
	return read(e.file("object.yaml"), ns)
}

// resource returns the resource of the example's object.
func (e exampleProgram) resource() string {
	GinkgoHelper()
	mapping, err := api.RESTMapper().RESTMapping(e.object("").GroupVersionKind().GroupKind())
	Expect(err).NotTo(HaveOccurred())
	return mapping.Resource.Resource
}

package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

var _ = Describe("What handlers patch", func() {
	It("logs a field that the schema drops once, with a solution", func(ctx context.Context) {
		ns := namespace(ctx)
		definition := crd("Schematic", true)
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields = nil
		installCRD(definition)
		op := kopf.New("schematic.example.org", settingsFor(ns))
		kopf.ForResource(
			op, "robustness.example.org/v1", "schematics",
		).OnCreate("c", func(_ context.Context, c *unstructuredChange) error {
			c.SetResult(map[string]any{"a": "b"})
			return nil
		})
		running := start(op)
		for _, name := range []string{"one", "two", "three"} {
			obj := raw("robustness.example.org/v1", "Schematic", ns, name, nil)
			delete(obj.Object, "spec")
			create(ctx, obj)
			Eventually(
				annotation(ctx, obj, "schematic.example.org"+lastHandledSuffix),
			).ShouldNot(BeNil(), "the creation is completed without the dropped field")
		}
		logs := string(running.logs.Contents())
		Expect(strings.Count(logs, "API server dropped a field")).To(Equal(1))
		Expect(logs).To(MatchRegexp(`x-kubernetes-preserve-unknown-fields.*"field":"status".*Kind=Schematic`))
	})
})

package e2e_test

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("The examples of peering", func() {
	It("06-peering hands over to a process of a higher priority, and back", func(ctx context.Context) {
		folder := filepath.Join("..", "..", "examples", "06-peering")
		program, ns := build(folder), namespace(ctx)
		meeting := peeringObject(ctx, "kopf.dev", ns, "peering.kopf.dev")
		obj := read(filepath.Join(folder, "object.yaml"), ns)
		create(ctx, obj)

		low := run(program, []string{"POD_ID=low"}, "-n", ns, "--priority=1")
		Eventually(low.Err).Should(gbytes.Say("Worked"))
		merge(ctx, obj, `{"spec":{"field":"before"}}`)
		Eventually(low.Err).Should(gbytes.Say("Working"))
		high := run(program, []string{"POD_ID=high"}, "-n", ns, "--priority=2")
		Eventually(low.Err).Should(gbytes.Say("Pausing operations in favour of peers.*high"))
		Expect(identities(ctx, meeting)).To(Equal([][]string{{"high", "low"}}))

		merge(ctx, obj, `{"spec":{"field":"between"}}`)
		Eventually(high.Err).Should(gbytes.Say("Working.*changes=1"), "only the new change is handled")
		Eventually(high.Err).Should(gbytes.Say("Worked"))
		Eventually(annotation(ctx, obj, "peering.kopf.dev"+lastHandledSuffix)).Should(ContainSubstring("between"))
		Expect(low.Err).NotTo(gbytes.Say("Working"))
		Eventually(high.Terminate()).Should(gexec.Exit(0))
		Eventually(low.Err).Should(gbytes.Say("Resuming operations after the pause"))

		merge(ctx, obj, `{"spec":{"field":"after"}}`)
		Eventually(low.Err).Should(gbytes.Say("Working.*changes=1"))
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Eventually(low.Terminate()).Should(gexec.Exit(0))
		Expect(identities(ctx, meeting)).To(Equal([][]string{nil}), "every process removes its record when it stops")
	})
})

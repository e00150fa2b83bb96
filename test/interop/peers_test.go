package interop_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// peer is an operator of either side, in the peering that those of Kopf find by themselves.
type peer struct {
	operator
	log        *gbytes.Buffer
	pauseLines []string // its log lines during a pause, the last one when all work has stopped
}

func kopfPeer(priority int) func() peer {
	return func() peer {
		log := gbytes.NewBuffer()
		return peer{
			&pythonKopf{options: []string{fmt.Sprint("--priority=", priority), "--verbose"}, log: log}, log,
			[]string{"Pausing operations in favour of", "Pausing the watch-stream for kopfexamples"},
		}
	}
}

func goPeer(priority int) func() peer {
	return func() peer {
		log := gbytes.NewBuffer()
		return peer{&goOperator{priority: priority, log: log}, log, []string{"Pausing operations in favour of"}}
	}
}

var _ = Describe("Operators of both", func() {
	DescribeTable("pause for one of a higher priority, and go on when it leaves",
		func(ctx context.Context, newLow, newHigh func() peer) {
			c := cluster{fmt.Sprintf("peers-%d-%d", GinkgoRandomSeed(), time.Now().UnixNano())}
			Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})).To(Succeed())
			m, low, high := newPeeringFixture(ctx, c.namespace, "default"), newLow(), newHigh()
			low.start(c.namespace)
			c.create(ctx, "quiet", "edited", "doomed")
			for _, name := range []string{"quiet", "edited", "doomed"} {
				c.handled(ctx, name, "a")
			}
			before := low.calls()

			By("having one of a higher priority come")
			high.start(c.namespace)
			for _, line := range low.pauseLines {
				Eventually(low.log).Should(gbytes.Say(line))
			}
			Expect(m.records(ctx)).To(HaveLen(2))
			c.edit(ctx, "edited", "b")
			Expect(api.Delete(ctx, example(c.namespace, "doomed", nil))).To(Succeed())
			c.create(ctx, "new")
			c.handled(ctx, "edited", "b")
			c.handled(ctx, "new", "a")
			Eventually(c.isGone(ctx, "doomed")).Should(BeTrue())
			Expect(withoutTimes(high.calls())).To(Equal([]string{
				"doomed delete_fn delete retry=0 ",
				`edited field_fn/spec.field update retry=0 [["change",[],"a","b"]]`,
				`edited update_fn update retry=0 [["change",["spec","field"],"a","b"]]`,
				"new create_fn create retry=0 ", "new field_fn/spec.field create retry=0 ",
			}), "only changed objects are handled")
			Expect(low.calls()).To(Equal(before), "a paused operator calls no handler")

			By("having it leave")
			high.stop()
			c.edit(ctx, "edited", "c")
			Eventually(low.log).Should(gbytes.Say("Resuming operations after the pause"))
			c.handled(ctx, "edited", "c")
			Expect(withoutTimes(low.calls()[len(before):])).To(Equal([]string{
				`edited field_fn/spec.field update retry=0 [["change",[],"b","c"]]`,
				`edited update_fn update retry=0 [["change",["spec","field"],"b","c"]]`,
			}), "only later changes are handled after the pause")
			low.stop()
			Expect(m.records(ctx)).To(BeEmpty(), "every operator removes its record")
		},
		Entry("Kopf for ours", kopfPeer(1), goPeer(2)),
		Entry("ours for Kopf", goPeer(1), kopfPeer(2)),
	)
})

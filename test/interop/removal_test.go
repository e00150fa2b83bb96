package interop_test

import (
	"context"
	"fmt"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

var _ = Describe("An operator of Kopf that was frozen", func() {
	It("removes records that have been renewed since", func(ctx context.Context) {
		c := cluster{fmt.Sprintf("removal-%d", GinkgoRandomSeed())}
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})).To(Succeed())
		m, log := newPeeringFixture(ctx, c.namespace, "meeting"), gbytes.NewBuffer()
		python := &pythonKopf{options: []string{"--peering=meeting", "--verbose"}, log: log}
		object := peering.StoredObject{
			Client: api, Kind: m.object.GroupVersionKind(), Namespace: c.namespace, Name: m.object.GetName(),
		}
		put := func(lifetime time.Duration) {
			GinkgoHelper()
			_, err := object.WriteRecord(ctx, "alive", peering.PeerRecord{
				Priority: 9, Lifetime: lifetime, LastSeen: time.Now(), Runtime: "kopf-runtime",
			})
			Expect(err).NotTo(HaveOccurred())
		}
		put(time.Hour)
		python.start(c.namespace)
		Eventually(log).Should(gbytes.Say("Pausing the watch-stream for kopfexamples"))

		process := python.process.Process
		Expect(process.Signal(syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = process.Signal(syscall.SIGCONT) }) // otherwise it would not end
		old := 2 * time.Second
		for there := true; there; _, there = m.records(ctx)["alive"] {
			for range 8 { // of few events, it may take the last one alone
				put(old)
			}
			time.Sleep(old) // the time is what this is about
			put(time.Hour)
			Expect(process.Signal(syscall.SIGCONT)).To(Succeed())
			time.Sleep(time.Second)
			Expect(process.Signal(syscall.SIGSTOP)).To(Succeed())
		}
		Expect(process.Signal(syscall.SIGCONT)).To(Succeed())
		python.stop()
	})
})

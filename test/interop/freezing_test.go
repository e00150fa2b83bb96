package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// commandRunner is one of the two that have commands for people.
type commandRunner func(ctx context.Context, args string)

// runKopfCommand are the commands of genuine Kopf.
func runKopfCommand(ctx context.Context, args string) {
	GinkgoHelper()
	process := exec.CommandContext(ctx, filepath.Join(kopfFolder, "bin", "kopf"), strings.Fields(args)...)
	process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := process.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kopf %s: %s", args, out)
}

// runOurCommand are those of a program of ours.
func runOurCommand(ctx context.Context, args string) {
	GinkgoHelper()
	var out bytes.Buffer
	cmd := kopf.New("interop.example.org").Command()
	cmd.SetArgs(append(strings.Fields(args), "--kubeconfig", kubeconfig))
	cmd.SetErr(&out)
	Expect(cmd.ExecuteContext(ctx)).To(Succeed(), "%s: %s", args, &out)
}

// peeringFixture is a peering object, and what an operator of ours would do about it.
type peeringFixture struct{ object *unstructured.Unstructured }

func newPeeringFixture(ctx context.Context, namespace, name string) peeringFixture {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("..", "..", "config", "crd", "peerings.yaml")}, ErrorIfPathMissing: true,
	})
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kopf.dev/v1")
	object.SetKind("KopfPeering")
	object.SetNamespace(namespace)
	object.SetName(name)
	Expect(api.Create(ctx, object)).To(Succeed())
	return peeringFixture{object}
}

// records are those in the object.
func (m peeringFixture) records(ctx context.Context) map[string]peering.PeerRecord {
	GinkgoHelper()
	fresh := m.object.DeepCopy()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(fresh), fresh)).To(Succeed())
	records, err := peering.DecodeRecords(fresh.Object, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return records
}

// isPaused reports whether an operator of ours pauses for the identity "me".
func (m peeringFixture) isPaused(ctx context.Context, priority int) bool {
	GinkgoHelper()
	records := m.records(ctx)
	self := peering.Self{Identity: "ours", Priority: priority, Elects: true}
	return peering.JudgeRecords(self, map[string]peering.PeerRecord{"me": records["me"]}, time.Now()).IsPaused()
}

var _ = Describe("People who have operators pause", func() {
	It("do so by Kopf's commands and by ours, for operators of both", func(ctx context.Context) {
		c := cluster{"freezing"}
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})).To(Succeed())
		m := newPeeringFixture(ctx, c.namespace, "meeting")
		log := gbytes.NewBuffer()
		python := &pythonKopf{options: []string{"--peering=meeting", "--priority=5", "--verbose"}, log: log}
		python.start(c.namespace)
		c.create(ctx, "first")
		Eventually(names(python)).Should(ContainElement("first"), "it acts, and so it has read its peers")

		for i, turn := range []struct{ freezes, resumes commandRunner }{{runKopfCommand, runOurCommand},
			{runOurCommand, runKopfCommand}} {
			turn.freezes(ctx, fmt.Sprintf("freeze -n %s -P meeting -i me -t 3600 -p 7", c.namespace))
			Expect(m.records(ctx)["me"]).To(And(
				HaveField("Priority", 7), HaveField("Lifetime", time.Hour), HaveField("Runtime", ""),
			))
			Expect([]bool{m.isPaused(ctx, 6), m.isPaused(ctx, 7),
				m.isPaused(ctx, 8)}).To(Equal([]bool{true, true, false}))
			Eventually(log).Should(gbytes.Say("Pausing operations in favour of"))
			Eventually(log).Should(gbytes.Say("Pausing the watch-stream for kopfexamples"), "nothing comes now")
			later := fmt.Sprint("later-", i)
			c.create(ctx, later)
			resumed := time.Now()
			turn.resumes(ctx, fmt.Sprintf("resume -n %s -P meeting -i me", c.namespace))
			Expect(m.records(ctx)).NotTo(HaveKey("me"))
			Eventually(log).Should(gbytes.Say("Resuming operations after the pause"))
			Eventually(names(python)).Should(ContainElement(later),
				"objects created during the pause are handled after it")
			for _, one := range python.calls() {
				if one.Name == later {
					Expect(one.At).To(BeNumerically(">=", float64(resumed.UnixNano())/1e9), "it has paused")
				}
			}
		}
		python.stop()
		Expect(m.records(ctx)).To(BeEmpty(), "it leaves no record")
	})
})

// names are the objects that handlers of creations were called for.
func names(k *pythonKopf) func() []string {
	return func() (all []string) {
		for _, one := range k.calls() {
			all = append(all, one.Name)
		}
		return all
	}
}

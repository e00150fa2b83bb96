package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Two processes with --leader-elect", func() {
	It("call each handler once, while one is frozen, killed or stopped", func(ctx context.Context) {
		folder := filepath.Join("..", "..", "examples", "06-peering")
		program, ns := build(folder), namespace(ctx)
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = "default", ns
		obj := read(filepath.Join(folder, "object.yaml"), ns)
		create(ctx, obj)
		both := []*gexec.Session{}
		for _, id := range []string{"a", "b"} {
			env := []string{"POD_ID=" + id}
			both = append(both, run(program, env, "-n", ns, "--leader-elect-id="+ns, "--leader-elect"))
		}
		calls := func() (count int) {
			for _, one := range both {
				count += strings.Count(string(one.Err.Contents()), "] Working")
			}
			return count
		}
		holder := func() string {
			Expect(api.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
			return *lease.Spec.HolderIdentity
		}
		Eventually(calls).Should(Equal(1))
		first, second := both[0], both[1]
		if strings.HasPrefix(holder(), "b_") {
			first, second = second, first
		}
		Eventually(first.Err).Should(gbytes.Say("Worked"))
		Eventually(second.Err).Should(gbytes.Say("Another process holds the Lease"))

		By("freezing the holder")
		first.Signal(syscall.SIGSTOP)
		// A call that begins before the process has stopped would be interrupted when it wakes up.
		Eventually(processState(first)).Should(Equal("T"))
		merge(ctx, obj, `{"spec":{"field":"frozen"}}`)
		Eventually(second.Err).Should(gbytes.Say("Worked"))
		first.Signal(syscall.SIGCONT)
		Eventually(first.Err).Should(gbytes.Say("Pausing operations, as the Lease was taken over"))
		merge(ctx, obj, `{"spec":{"field":"woken"}}`)
		Eventually(second.Err).Should(gbytes.Say("Worked"))
		Expect(calls()).To(Equal(3), "a holder that wakes up calls no handlers")

		By("killing the holder")
		second.Kill().Wait()
		merge(ctx, obj, `{"spec":{"field":"killed"}}`)
		Eventually(first.Err).Should(gbytes.Say("Holding the Lease"))
		Eventually(first.Err).Should(gbytes.Say("Worked"))
		Expect(calls()).To(Equal(4))

		By("stopping the holder")
		third := run(program, []string{"POD_ID=c"}, "-n", ns, "--leader-elect-id="+ns, "--leader-elect")
		both = append(both, third)
		Eventually(third.Err).Should(gbytes.Say("Another process holds the Lease"))
		Eventually(first.Terminate()).Should(gexec.Exit(0))
		Eventually(third.Err).Should(gbytes.Say("Holding the Lease"))
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Eventually(third.Terminate()).Should(gexec.Exit(0))
		Expect(holder()).To(BeEmpty(), "a process that stops releases the Lease")
		Expect(calls()).To(Equal(4))
	})
})

// processState returns a function that returns the state of a process, as the kernel names it: T if it is stopped.
func processState(of *gexec.Session) func() (string, error) {
	return func() (string, error) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", of.Command.Process.Pid))
		// The state follows the name of the program, which is in parentheses.
		_, after, _ := strings.Cut(string(text), ") ")
		state, _, _ := strings.Cut(after, " ")
		return state, err
	}
}

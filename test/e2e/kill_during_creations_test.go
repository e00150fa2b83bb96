package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// burstObjects is the number of objects: enough for a kill to meet them in all states, few enough for a test.
const burstObjects = 80

// killPoints lists after how many stored handler results the process is killed: during the first handlers, during the
// second handlers, and when most second handlers have ended.
var killPoints = []int{1, burstObjects + 1, burstObjects * 3 / 2}

// countCalls counts the calls in the output of a process, by "handler object".
func countCalls(process *gexec.Session) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(string(process.Out.Contents())) {
		if words := strings.Fields(line); len(words) >= 3 && words[0] == "CALL" {
			counts[words[1]+" "+words[2]]++
		}
	}
	return counts
}

// storedResults returns the handler results stored on the objects, by "handler object".
func storedResults(ctx context.Context, ns string) map[string]bool {
	GinkgoHelper()
	done := map[string]bool{}
	for _, obj := range gadgetsIn(ctx, ns) {
		annotations := obj.GetAnnotations()
		for _, id := range []string{"first", "second"} {
			var record struct{ Success bool }
			if text := annotations["killed.example.org/"+id]; text != "" {
				Expect(json.Unmarshal([]byte(text), &record)).To(Succeed())
			}
			if record.Success || annotations["killed.example.org"+lastHandledSuffix] != "" {
				done[id+" "+obj.GetName()] = true
			}
		}
	}
	return done
}

func gadgetsIn(ctx context.Context, ns string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("e2e.example.org/v1")
	list.SetKind("GadgetList")
	Expect(api.List(ctx, list, client.InNamespace(ns))).To(Succeed())
	return list.Items
}

var _ = Describe("An operator that is killed repeatedly", func() {
	It("during many creations loses nothing and repeats no stored result", func(ctx context.Context) {
		ns, objects := namespace(ctx), []*unstructured.Unstructured(nil)
		program := build(operatorFolder)
		for i := range burstObjects {
			objects = append(objects, gadget(ns, fmt.Sprintf("burst-%d", i), map[string]any{"size": int64(1)}))
		}
		created := make(chan struct{})
		calls, done := map[string]int{}, map[string]bool{}
		live := run(program, []string{"E2E_SLOW=1200ms"}, "-n", ns)
		go func() {
			defer GinkgoRecover()
			defer close(created)
			createMany(ctx, objects)
		}()
		finish := func() {
			for call, count := range countCalls(live) {
				Expect(done).NotTo(HaveKey(call), "a stored result is not repeated")
				calls[call] += count
			}
			done = storedResults(ctx, ns)
		}
		for _, enough := range killPoints {
			Eventually(func() int { return len(storedResults(ctx, ns)) }).Should(BeNumerically(">=", enough))
			live.Kill().Wait()
			finish()
			live = run(program, []string{"E2E_SLOW=1200ms"}, "-n", ns)
		}
		Eventually(created).Should(BeClosed())
		for _, obj := range objects {
			Eventually(
				annotation(ctx, obj, "killed.example.org"+lastHandledSuffix),
			).Should(Equal(`{"spec":{"size":1}}` + "\n"))
		}
		Eventually(live.Terminate()).Should(gexec.Exit(0))
		finish()

		repeated := 0
		for _, obj := range gadgetsIn(ctx, ns) {
			for _, id := range []string{"first", "second"} {
				count := calls[id+" "+obj.GetName()]
				Expect(count).To(
					And(BeNumerically(">=", 1), BeNumerically("<=", len(killPoints)+1)), id+" of "+obj.GetName(),
				)
				repeated += count - 1
				Expect(obj.Object["status"]).To(HaveKey(id), obj.GetName())
			}
			for key := range obj.GetAnnotations() {
				Expect(key).To(BeElementOf("killed.example.org"+lastHandledSuffix, "killed.example.org/handled-uid",
					"killed.example.org/kopf-managed"), obj.GetName())
			}
		}
		GinkgoWriter.Println(burstObjects, "objects,", len(killPoints), "kills:", repeated, "calls of", 2*burstObjects,
			"were repeated")
	})
})

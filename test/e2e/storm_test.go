package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	stormObjects = 200
	stormWriters = 20
	stormKills   = 5
	stormTime    = 30 * time.Second
)

// changeObjects change random objects until the time is up, and return the number of changes.
func changeObjects(ctx context.Context, objects []*unstructured.Unstructured) int {
	ctx, stop := context.WithTimeout(ctx, stormTime)
	defer stop()
	var all sync.WaitGroup
	counts := make([]int, stormWriters)
	for number := range stormWriters {
		all.Go(func() {
			luck := rand.New(rand.NewPCG(1, uint64(number)))
			for ctx.Err() == nil {
				obj := objects[luck.IntN(len(objects))].DeepCopy()
				patch := fmt.Sprintf(`{"spec":{"size":%d}}`, 2+luck.IntN(1_000_000))
				if api.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))) == nil {
					counts[number]++
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	all.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// callHistory is the history of handler calls that consecutive processes of an operator printed.
type callHistory struct {
	lastValues map[string]string // the value that a handler processed last, by handler and object
	calls      int
	overlaps   []string
}

func (t *callHistory) read(process *gexec.Session) {
	running := map[string]bool{} // calls of a killed process end with it
	for line := range strings.Lines(string(process.Out.Contents())) {
		words := strings.Fields(line)
		if len(words) != 4 {
			continue
		}
		call := words[1] + " " + words[2]
		switch words[0] {
		case "BEGIN":
			t.calls++
			if running[call] {
				t.overlaps = append(t.overlaps, call)
			}
			running[call] = true
		case "DONE":
			t.lastValues[call] = words[3]
			fallthrough
		case "FAILED", "BROKEN":
			delete(running, call)
		}
	}
}

var _ = Describe("An operator under load", func() {
	It("handles every last change and never runs a handler concurrently with itself", func(ctx context.Context) {
		ns, objects := namespace(ctx), []*unstructured.Unstructured(nil)
		for i := range stormObjects {
			obj := gadget(ns, fmt.Sprintf("storm-%d", i), map[string]any{"size": int64(1)})
			obj.SetLabels(map[string]string{"storm": "yes"})
			objects = append(objects, obj)
		}
		told := &callHistory{lastValues: map[string]string{}}
		live := process(ns)
		createMany(ctx, objects)
		written := make(chan int, 1)
		go func() { written <- changeObjects(ctx, objects) }()
		for range stormKills {
			select {
			case <-time.After(stormTime / (stormKills + 1)):
			case <-ctx.Done():
			}
			live.Kill().Wait()
			told.read(live)
			live = process(ns)
		}
		writes := <-written
		for _, obj := range objects {
			Eventually(isHandled(ctx, obj)).WithTimeout(10*time.Minute).Should(BeTrue(), obj.GetName())
		}
		Eventually(live.Terminate()).Should(gexec.Exit(0))
		told.read(live)

		Expect(told.overlaps).To(BeEmpty(), "a handler never runs concurrently with itself for one object")
		for _, obj := range gadgetsIn(ctx, ns) {
			size, _, err := unstructured.NestedInt64(obj.Object, "spec", "size")
			Expect(err).NotTo(HaveOccurred())
			for _, id := range []string{"steady", "shaky"} {
				Expect(told.lastValues[id+" "+obj.GetName()]).To(
					Equal(strconv.FormatInt(size, 10)), id+" of "+obj.GetName()+" saw the last change",
				)
			}
		}
		GinkgoWriter.Println(stormObjects, "objects,", writes, "writes,", stormKills, "kills,", told.calls, "calls")
	})
})

// isHandled reports whether the last-handled configuration is current and no progress is left.
func isHandled(ctx context.Context, obj *unstructured.Unstructured) func() (bool, error) {
	return func() (bool, error) {
		body, err := now(ctx, obj)()
		if err != nil {
			return false, err
		}
		size, _, err := unstructured.NestedInt64(body, "spec", "size")
		if err != nil {
			return false, err
		}
		annotations, _, err := unstructured.NestedStringMap(body, "metadata", "annotations")
		want := fmt.Sprintf(`{"metadata":{"labels":{"storm":"yes"}},"spec":{"size":%d}}`+"\n", size)
		got := annotations["killed.example.org"+lastHandledSuffix]
		for _, interim := range []string{"steady", "shaky", "handling-configuration"} {
			if annotations["killed.example.org/"+interim] != "" {
				return false, err
			}
		}
		return sameJSON(got, want), err
	}
}

// sameJSON compares two texts as JSON values.
func sameJSON(a, b string) bool {
	var left, right any
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil &&
		reflect.DeepEqual(left, right)
}

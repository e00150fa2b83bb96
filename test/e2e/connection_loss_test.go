package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var _ = Describe("A bad connection", func() {
	It("that cuts the watch loses none of the changes made meanwhile", func(ctx context.Context) {
		ns, seen, line := namespace(ctx), &calls{}, &faults{}
		running := startAs(line.over(config), recorder("cut.example.org", ns, seen))
		objects := map[string]*unstructured.Unstructured{}
		for _, name := range []string{"edited", "deleted", "replaced", "untouched"} {
			objects[name] = gadget(ns, name, map[string]any{"size": int64(1)})
			create(ctx, objects[name])
			Eventually(annotation(ctx, objects[name], "cut.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		}
		line.answering(func(request *http.Request) (*http.Response, error) {
			if isRead(request, "gadgets") {
				return nil, errDown
			}
			return nil, nil
		})
		line.cut()
		merge(ctx, objects["edited"], `{"spec":{"size":2}}`)
		remove(ctx, objects["deleted"])
		merge(ctx, objects["replaced"], `{"metadata":{"finalizers":null}}`)
		remove(ctx, objects["replaced"])
		again := gadget(ns, "replaced", map[string]any{"size": int64(3)})
		create(ctx, again)
		late := gadget(ns, "late", map[string]any{"size": int64(4)})
		create(ctx, late)
		before := running.requests.of("untouched")
		Expect(seen.list()).To(HaveLen(4), "no handler is called while the watch is down")

		line.answering(nil)
		Eventually(
			annotation(ctx, objects["edited"], "cut.example.org"+lastHandledSuffix),
		).Should(ContainSubstring(`"size":2`))
		Eventually(now(ctx, objects["deleted"])).Should(BeNil())
		Eventually(annotation(ctx, again, "cut.example.org"+lastHandledSuffix)).Should(ContainSubstring(`"size":3`))
		Eventually(annotation(ctx, late, "cut.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()[4:]).To(ConsistOf("update edited [change spec.size: 1 -> 2]", "delete deleted []",
			HavePrefix("create replaced"), HavePrefix("create late")),
			"each change is handled once, and no object is resumed")
		Expect(running.requests.of("untouched")).To(Equal(before))
	})

	It("for writes delays them without repeating handlers", func(ctx context.Context) {
		ns, seen, line := namespace(ctx), &calls{}, &faults{}
		var mu sync.Mutex
		tries := map[string]int{}
		// Each object has its own error, for several requests in a row.
		line.answering(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodPatch {
				return nil, nil
			}
			name := path.Base(request.URL.Path)
			mu.Lock()
			tries[name]++
			try := tries[name]
			mu.Unlock()
			switch {
			case name == "code500" && try <= 3:
				return status(request, http.StatusInternalServerError), nil
			case name == "code503" && try <= 2:
				return status(request, http.StatusServiceUnavailable), nil
			case name == "code429" && try <= 2:
				return status(request, http.StatusTooManyRequests, "Retry-After", "1"), nil
			case name == "lost" && try <= 3:
				return nil, errDown
			case name == "answerless" && try <= 2:
				response, err := line.next.RoundTrip(request)
				if err == nil {
					err = response.Body.Close()
				}
				if err != nil {
					return nil, err
				}
				return nil, errDown
			case name == "hanging" && try == 1:
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			return nil, nil
		})
		startAs(line.over(config), recorder("trouble.example.org", ns, seen))
		var objects []*unstructured.Unstructured
		for _, name := range []string{"code500", "code503", "code429", "lost", "answerless", "hanging", "fine"} {
			objects = append(objects, gadget(ns, name, map[string]any{"size": int64(1)}))
		}
		createMany(ctx, objects)
		for _, obj := range objects {
			Eventually(annotation(ctx, obj, "trouble.example.org"+lastHandledSuffix)).ShouldNot(BeNil(), obj.GetName())
			merge(ctx, obj, `{"spec":{"size":2}}`)
		}
		var want []any
		for _, obj := range objects {
			Eventually(
				annotation(ctx, obj, "trouble.example.org"+lastHandledSuffix),
			).Should(ContainSubstring(`"size":2`), obj.GetName())
			want = append(want, HavePrefix("create "+obj.GetName()), HavePrefix("update "+obj.GetName()))
		}
		Expect(seen.list()).To(ConsistOf(want...), "each handler runs once for each change")
	})

	It("or a missing permission for lists only delays the start", func(ctx context.Context) {
		ns, seen, line := namespace(ctx), &calls{}, &faults{}
		early := gadget(ns, "early", map[string]any{"size": int64(1)})
		create(ctx, early)
		role := allow(ctx, "blind", "get", "patch")
		user, err := environment.AddUser(envtest.User{Name: "blind"}, nil)
		Expect(err).NotTo(HaveOccurred())
		running := startAs(line.over(user.Config()), recorder("blind.example.org", ns, seen))
		Eventually(running.logs).Should(gbytes.Say(`Cannot list or watch a resource.*Gadget.*forbidden`))
		line.answering(func(request *http.Request) (*http.Response, error) {
			if isRead(request, "gadgets") {
				return status(request, http.StatusInternalServerError), nil
			}
			return nil, nil
		})
		role.Rules[0].Verbs = append(role.Rules[0].Verbs, "list", "watch")
		Expect(api.Update(ctx, role)).To(Succeed())
		Eventually(running.logs).Should(gbytes.Say(`Cannot list or watch a resource.*Gadget`),
			"a new list error is logged again")
		Expect(seen.list()).To(BeEmpty())
		line.answering(nil)
		Eventually(annotation(ctx, early, "blind.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		late := gadget(ns, "late", map[string]any{"size": int64(1)})
		create(ctx, late)
		Eventually(annotation(ctx, late, "blind.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create early"), HavePrefix("create late")))
	})

	It("that is cut repeatedly neither loses nor repeats changes", func(ctx context.Context) {
		ns, seen, line := namespace(ctx), &calls{}, &faults{}
		startAs(line.over(config), recorder("flaky.example.org", ns, seen))
		var objects []*unstructured.Unstructured
		for i := range 40 {
			objects = append(objects, gadget(ns, fmt.Sprintf("flaky-%d", i), map[string]any{"size": int64(0)}))
		}
		createMany(ctx, objects)
		for size := 1; size <= 4; size++ {
			for _, obj := range objects {
				merge(ctx, obj, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
			}
			line.cut()
		}
		for _, obj := range objects {
			Eventually(
				annotation(ctx, obj, "flaky.example.org"+lastHandledSuffix),
			).Should(Equal(`{"spec":{"size":4}}` + "\n"))
			var creations, last int
			for _, call := range seen.list() {
				if ok, _ := HavePrefix("create " + obj.GetName() + " ").Match(call); ok {
					creations++
				}
				if ok, _ := MatchRegexp("^update " + obj.GetName() + " .*-> 4").Match(call); ok {
					last++
				}
			}
			Expect([]int{creations, last}).To(HaveEach(BeNumerically("<=", 1)), obj.GetName())
			Expect(creations).To(Equal(1), obj.GetName())
		}
	})
})

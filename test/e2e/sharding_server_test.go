package e2e_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// partTransport adds a range of the hash of uids to each request.
type partTransport struct {
	next   http.RoundTripper
	bounds string
}

func (p partTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	query.Set("shardSelector", "shardRange(object.metadata.uid, "+p.bounds+")")
	request.URL.RawQuery = query.Encode()
	return p.next.RoundTrip(request)
}

// partOf returns a client whose lists and watches ask for a range of the hash of uids.
func partOf(bounds string) client.WithWatch {
	GinkgoHelper()
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return partTransport{next, bounds} })
	c, err := client.NewWithWatch(own, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// countPart returns how many objects a list has, and how many a watch that begins with the present objects.
func countPart(ctx context.Context, ns, bounds string) (listed, watched int) {
	GinkgoHelper()
	c := partOf(bounds)
	var list v1.WidgetList
	Expect(c.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
	events, err := c.Watch(ctx, &v1.WidgetList{}, client.InNamespace(ns), &client.ListOptions{
		Raw: &metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		},
	})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Bookmark {
			break
		}
		Expect(event.Type).To(Equal(watch.Added))
		watched++
	}
	return len(list.Items), watched
}

var _ = Describe("Lists and watches of parts of a custom resource", func() {
	const objects = 40
	inBothParts := func(ctx context.Context) (listed, watched int) {
		ns := namespace(ctx)
		for i := range objects {
			create(ctx, widget(ns, fmt.Sprint("w", i), map[string]any{"value": 1}))
		}
		l1, w1 := countPart(ctx, ns, "'0x0000000000000000', '0x8000000000000000'")
		l2, w2 := countPart(ctx, ns, "'0x8000000000000000', '0x10000000000000000'")
		return l1 + l2, w1 + w2
	}

	It("have all objects twice if the API server does not shard them", func(ctx SpecContext) {
		listed, watched := inBothParts(ctx)
		Expect([]int{listed, watched}).To(Equal([]int{2 * objects, 2 * objects}))
	})

	It("have each object in one part, with the feature gate", func(ctx SpecContext) {
		useShardingControlPlane()
		listed, watched := inBothParts(ctx)
		Expect([]int{listed, watched}).To(Equal([]int{objects, objects}))
	})
})

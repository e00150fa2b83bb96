package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// sharedRanges is the number of ranges of the example.
const sharedRanges = 16

// sharedWebsites are websites in a namespace that replicas of the example share.
type sharedWebsites struct {
	ns, program string
	replicas    []*gexec.Session // also those that have ended
	titles      map[string]string
}

func shareWebsites(ctx context.Context) *sharedWebsites {
	GinkgoHelper()
	install(filepath.Join(examplesFolder, "getting-started", "crd.yaml"))
	return &sharedWebsites{
		ns: namespace(ctx), program: build(filepath.Join(examplesFolder, "tasks", "sharding")),
		titles: map[string]string{},
	}
}

// join starts a replica. The Leases have the name of the namespace.
func (s *sharedWebsites) join(args ...string) *gexec.Session {
	GinkgoHelper()
	identity := []string{fmt.Sprint("POD_ID=r", len(s.replicas))}
	replica := run(s.program, identity, append(args, "-n", s.ns, "--leader-elect-id="+s.ns)...)
	s.replicas = append(s.replicas, replica)
	return replica
}

// shares returns the number of ranges of each live replica that has some, and how many ranges have no owner.
func (s *sharedWebsites) shares(ctx context.Context) (shares []int, unowned int, err error) {
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, 0, err
	}
	all, err := sharding.ReadStatus(ctx, leases, types.NamespacedName{Namespace: "default", Name: s.ns})
	status := all["default"]
	for _, replica := range status.Replicas {
		if len(replica.Ranges) > 0 {
			shares = append(shares, len(replica.Ranges))
		}
	}
	return shares, len(status.Unowned), err
}

// awaitShares waits until a number of replicas hold all ranges, and none holds more than its share.
func (s *sharedWebsites) awaitShares(ctx context.Context, replicas int) {
	GinkgoHelper()
	most := (sharedRanges + replicas - 1) / replicas
	Eventually(func(g Gomega) {
		shares, unowned, err := s.shares(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(unowned).To(BeZero())
		g.Expect(shares).To(HaveLen(replicas))
		g.Expect(shares).To(HaveEach(BeNumerically("<=", most)))
	}).WithPolling(time.Second / 2).Should(Succeed())
}

// set creates a website, or changes its title.
func (s *sharedWebsites) set(ctx context.Context, name, title string) error {
	site := raw("websites.example.org/v1", "Website", s.ns, name, map[string]any{"title": title})
	if s.titles[name] == "" {
		s.titles[name] = title
		return api.Create(ctx, site)
	}
	s.titles[name] = title
	return api.Patch(ctx, site, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"title":%q}}`, title)))
}

// unhandled returns how many websites have another title than their last-handled configuration, which is saved last.
func (s *sharedWebsites) unhandled(ctx context.Context) (count int, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("websites.example.org/v1")
	list.SetKind("WebsiteList")
	if err := api.List(ctx, list, client.InNamespace(s.ns)); err != nil {
		return 0, err
	}
	count = len(s.titles)
	for _, site := range list.Items {
		saved := site.GetAnnotations()["websites.example.org"+lastHandledSuffix]
		if strings.Contains(saved, fmt.Sprintf(`"title":%q`, s.titles[site.GetName()])) {
			count--
		}
	}
	return count, nil
}

// renderingLine matches the log line of a call: the website and its title.
var renderingLine = regexp.MustCompile(`/(\S+)\] Rendering title=(\S+) `)

// calls returns the number of calls for each website and title, and that of each replica.
func (s *sharedWebsites) calls() (bySite map[string]int, byReplica []int) {
	bySite = map[string]int{}
	for _, replica := range s.replicas {
		calls := renderingLine.FindAllStringSubmatch(string(replica.Err.Contents()), -1)
		byReplica = append(byReplica, len(calls))
		for _, call := range calls {
			bySite[call[1]+" "+call[2]]++
		}
	}
	return bySite, byReplica
}

// repeated returns the calls that were made more than once.
func repeated(bySite map[string]int) (all []string) {
	for call, count := range bySite {
		if count > 1 {
			all = append(all, fmt.Sprintf("%s: %d", call, count))
		}
	}
	return all
}

var _ = Describe("Three replicas that share the objects", func() {
	const objects = 60
	play := func(ctx context.Context) (logs string) {
		s := shareWebsites(ctx)
		for range 3 {
			s.join()
		}
		s.awaitShares(ctx, 3)
		for i := range objects {
			Expect(s.set(ctx, fmt.Sprint("site-", i), "first")).To(Succeed())
		}
		Eventually(s.unhandled).WithArguments(ctx).Should(BeZero())
		bySite, byReplica := s.calls()
		Expect(bySite).To(HaveLen(objects))
		Expect(repeated(bySite)).To(BeEmpty(), "one replica handles a website")
		Expect(byReplica).To(HaveEach(BeNumerically(">", 0)), "each replica handles its share")

		s.replicas[0].Kill().Wait()
		killed := time.Now()
		for i := range objects {
			Expect(s.set(ctx, fmt.Sprint("site-", i), "second")).To(Succeed())
		}
		Eventually(s.unhandled).WithArguments(ctx).WithTimeout(25*time.Second).Should(BeZero(),
			"others take the ranges of a replica 15 seconds after its death, and up to 5 more")
		fmt.Printf("calls of each replica: %v; all edits are handled %s after a kill\n", byReplica,
			time.Since(killed).Round(time.Second/10))
		bySite, _ = s.calls()
		Expect(bySite).To(HaveLen(2 * objects))
		Expect(repeated(bySite)).To(BeEmpty(), "the others call the handlers of new changes only")
		for _, replica := range s.replicas[1:] {
			Eventually(replica.Terminate()).Should(gexec.Exit(0))
			logs += string(replica.Err.Contents())
		}
		shares, _, err := s.shares(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(shares).To(BeEmpty(), "replicas that end release their ranges")
		return logs
	}
	const foreign = "The API server does not filter by ranges"

	It("handle each object once, also after a kill, if the API server sends all objects", func(ctx SpecContext) {
		Expect(play(ctx)).To(ContainSubstring(foreign))
	})

	It("handle each object once, also after a kill, if the API server sends ranges", func(ctx SpecContext) {
		useShardingControlPlane()
		Expect(play(ctx)).NotTo(ContainSubstring(foreign))
	})
})

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

const (
	unhandledPerReplica = 100 // as the command manifests writes it
	mostReplicas        = 4
	// The delays of the HorizontalPodAutoscaler are shorter, so that the spec ends in minutes.
	scaleUpDelay   = 4 * time.Second
	scaleDownDelay = 10 * time.Second

	sites      = 900 // then fewer in a second
	changeRate = 30  // in a second; one replica renders ten
)

// autoscaledWebsites have as many replicas as a HorizontalPodAutoscaler would run.
type autoscaledWebsites struct {
	*sharedWebsites
	live    []autoscaledReplica
	most    int
	started time.Time
	rising  time.Time // when more replicas were not needed
	falling time.Time // when all replicas were needed
	history []string
}

type autoscaledReplica struct {
	process *gexec.Session
	metrics string
}

func (a *autoscaledWebsites) add() {
	GinkgoHelper()
	address := freeAddress()
	a.live = append(a.live, autoscaledReplica{a.join("--metrics-bind-address", address), address})
	a.most = max(a.most, len(a.live))
}

var unhandledMetric = regexp.MustCompile(`(?m)^kopf_unhandled_changes\{.*\} (\S+)$`)

// backlog returns the metric of a replica, or zero while the process starts.
func (r autoscaledReplica) backlog(ctx context.Context) (sum float64) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	values := unhandledMetric.FindAllStringSubmatch(string(text), -1)
	Expect(len(values)).To(BeNumerically("<=", 1), "the ranges of a replica have one sum")
	for _, value := range values {
		sum, err = strconv.ParseFloat(value[1], 64)
		Expect(err).NotTo(HaveOccurred())
	}
	return sum
}

// look reads the metrics, and returns how many replicas they need.
func (a *autoscaledWebsites) look(ctx context.Context) (desired int) {
	GinkgoHelper()
	total, shares := 0, make([]string, len(a.live))
	for i, one := range a.live {
		backlog := int(one.backlog(ctx))
		total, shares[i] = total+backlog, strconv.Itoa(backlog)
	}
	desired = min(max((total+unhandledPerReplica-1)/unhandledPerReplica, 1), mostReplicas)
	unhandled, err := a.unhandled(ctx)
	Expect(err).NotTo(HaveOccurred())
	_, byReplica := a.calls()
	a.history = append(a.history, fmt.Sprintf(
		"%4.0f s  unhandled %4d  metric %4d = %-22s replicas %d, desired %d  calls %v", time.Since(a.started).Seconds(),
		unhandled, total, strings.Join(shares, " + "), len(a.live), desired, byReplica))
	return desired
}

// scale starts or stops replicas if the metrics have differed from their number for some time.
func (a *autoscaledWebsites) scale(ctx context.Context) {
	GinkgoHelper()
	desired, now := a.look(ctx), time.Now()
	if desired <= len(a.live) {
		a.rising = now
	}
	if desired >= len(a.live) {
		a.falling = now
	}
	switch {
	case now.Sub(a.rising) >= scaleUpDelay:
		for len(a.live) < desired {
			a.add()
		}
	case now.Sub(a.falling) >= scaleDownDelay:
		last := len(a.live) - 1
		a.live[last].process.Terminate() // the number of replicas does not include pods that end
		a.live, a.falling = a.live[:last], now
	}
}

// The spec runs on demand: make explore NAME=autoscaling.
var _ = Describe("Replicas whose number follows the backlog", func() {
	if os.Getenv("AUTOSCALING") == "" {
		return
	}
	It("handle each object once while they become four, and one again", func(ctx SpecContext) {
		now := time.Now()
		a := &autoscaledWebsites{sharedWebsites: shareWebsites(ctx), started: now, rising: now, falling: now}
		DeferCleanup(func() { fmt.Println(strings.Join(a.history, "\n")) })
		a.add()
		a.awaitShares(ctx, 1)
		changes, looks := time.NewTicker(time.Second/changeRate), time.NewTicker(2*time.Second)
		DeferCleanup(changes.Stop)
		DeferCleanup(looks.Stop)
		made, ticks := 0, 0
		for end := time.Now().Add(waitTimeout); made < sites || len(a.live) > 1; {
			Expect(time.Now()).To(BeTemporally("<", end), "the replicas handle all changes, and one is left")
			select {
			case <-changes.C:
				if ticks++; made >= sites && ticks%10 != 0 {
					continue // changes go on while replicas end, at a rate that one replica handles
				}
				Expect(a.set(ctx, fmt.Sprint("site-", made), "first")).To(Succeed())
				made++
			case <-looks.C:
				a.scale(ctx)
			}
		}
		Eventually(a.unhandled).WithArguments(ctx).Should(BeZero(), "no change is lost")
		a.awaitShares(ctx, 1)
		a.look(ctx)
		bySite, byReplica := a.calls()
		a.history = append(a.history, fmt.Sprintf("changes %d, calls %v", made, byReplica))
		Expect(a.most).To(Equal(mostReplicas))
		Expect(bySite).To(HaveLen(made))
		Expect(repeated(bySite)).To(BeEmpty(), "each change is handled once, by one replica")
		for _, replica := range a.replicas[1:] {
			Eventually(replica).Should(gexec.Exit(0))
		}
	})
})

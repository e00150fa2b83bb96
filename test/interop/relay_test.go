package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// runner is one side of a relay.
type runner interface {
	start(namespace string, plan map[string]string)
	kill()
	// calls are those since the last start.
	calls() []call
}

// relay is one namespace with all rows at once, each of them an object.
type relay struct {
	cluster
	rows      []row
	number    int
	runner    runner
	pastCalls []call            // of former lives
	failures  map[string]string // why rows are given up
}

var _ = Describe("Changes", func() {
	DescribeTable("go on where the other side was killed",
		func(ctx context.Context, rows func() []row, one, other func() runner) {
			r := &relay{
				cluster: cluster{fmt.Sprintf("relay-%d-%d", GinkgoRandomSeed(), time.Now().UnixNano())}, rows: rows(),
				failures: map[string]string{},
			}
			Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})).To(Succeed())
			for r.number = range legCount {
				r.runLeg(ctx, one())
				one, other = other, one
			}
			r.number = legCount
			r.runLastLife(ctx, one())
			r.judge(ctx)
			Expect(slices.Sorted(maps.Values(r.failures))).To(BeEmpty())
		},
		Entry("changes, begun by ours", changeRows, newRelayGo, newRelayKopf),
		Entry("changes, begun by Kopf", changeRows, newRelayKopf, newRelayGo),
		Entry("deletions, begun by ours", deletionRows, newRelayGo, newRelayKopf),
		Entry("deletions, begun by Kopf", deletionRows, newRelayKopf, newRelayGo),
		Entry("daemons, begun by ours", daemonRows, newRelayGo, newRelayKopf),
		Entry("daemons, begun by Kopf", daemonRows, newRelayKopf, newRelayGo),
		Entry("objects held in the background alone, begun by ours", backgroundRows, newRelayGo, newRelayKopf),
		Entry("objects held in the background alone, begun by Kopf", backgroundRows, newRelayKopf, newRelayGo),
	)
})

func newRelayGo() runner   { return &relayGo{} }
func newRelayKopf() runner { return &relayKopf{} }

// runLeg is one life, up to its death in the middle of everything.
func (r *relay) runLeg(ctx context.Context, side runner) {
	GinkgoHelper()
	r.startLife(side)
	if r.number == 0 {
		for _, one := range r.rows {
			Expect(api.Create(ctx, example(r.namespace, one.name, one.labels))).To(Succeed())
		}
	}
	r.await(ctx, "not ended: the work of the life before", r.ready, func(one row) {
		if own := one.leg(r.number); own.killPoint != killBeforeChange {
			r.change(ctx, one, own.change)
		}
	})
	r.await(ctx, "not reached", r.reached, nil)
	side.kill()
	r.pastCalls = append(r.pastCalls, side.calls()...)
	for _, one := range r.activeRows() {
		own := one.leg(r.number)
		if own.killPoint == killBeforeChange {
			r.change(ctx, one, own.change)
		}
		r.change(ctx, one, own.changeAfterKill)
	}
}

// runLastLife is the final life, which completes all work and handles one more edit of each object.
func (r *relay) runLastLife(ctx context.Context, side runner) {
	GinkgoHelper()
	r.startLife(side)
	r.await(ctx, "not ended in the last life", r.ready, func(one row) {
		if _, deleted := one.stateDuring(legCount); !deleted {
			r.edit(ctx, one.name, "z")
		}
	})
	r.await(ctx, "not ended finally", func(one row, s *observation) bool {
		_, deleted := one.stateDuring(legCount)
		return deleted || isFullyHandled(s.objects[one.name], "z")
	}, nil)
	r.create(ctx, "sentinel")
	r.handled(ctx, "sentinel", "a")
	r.edit(ctx, "sentinel", "b")
	r.handled(ctx, "sentinel", "b")
	side.kill()
	r.pastCalls = append(r.pastCalls, side.calls()...)
}

func (r *relay) startLife(side runner) {
	GinkgoHelper()
	By(fmt.Sprintf("life %d: %T", r.number, side))
	plan := map[string]string{}
	for _, one := range r.rows {
		one.addPlans(r.number, plan)
	}
	r.runner = side
	side.start(r.namespace, plan)
}

func (r *relay) change(ctx context.Context, one row, change string) {
	GinkgoHelper()
	switch change {
	case creation, noChange:
	case deletion:
		Expect(api.Delete(ctx, example(r.namespace, one.name, nil))).To(Succeed())
	default:
		r.edit(ctx, one.name, change)
	}
}

// activeRows are the rows that are not given up.
func (r *relay) activeRows() (rows []row) {
	for _, one := range r.rows {
		if r.failures[one.name] == "" {
			rows = append(rows, one)
		}
	}
	return rows
}

// await waits until it is so with each row, and does something with it then. Those with which nothing happens any more
// are given up.
func (r *relay) await(ctx context.Context, failure string, is func(one row, s *observation) bool, then func(row)) {
	GinkgoHelper()
	waiting, deadline := r.activeRows(), time.Now().Add(waitTimeout)
	for len(waiting) > 0 && time.Now().Before(deadline) {
		s := r.observe(ctx)
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(one row) bool {
			met := is(one, s)
			if met && then != nil {
				then(one)
			}
			return met
		})
		if len(waiting) < before {
			deadline = time.Now().Add(waitTimeout)
		}
		time.Sleep(200 * time.Millisecond) // between two looks at the real API server
	}
	for _, one := range waiting {
		text, _ := json.Marshal(r.observe(ctx).objects[one.name])
		r.failures[one.name] = fmt.Sprintf(
			"%s: life %d: %s %s: %s %s", one.name, r.number, failure, one.leg(r.number).killPoint,
			callsOf(r.runner.calls(), one), text,
		)
	}
}

// judge compares all that was done with what the row wants.
func (r *relay) judge(ctx context.Context) {
	GinkgoHelper()
	s := r.observe(ctx)
	for _, one := range r.activeRows() {
		value, deleted := one.stateDuring(legCount)
		want, made := slices.Clone(one.want), callsOf(r.pastCalls, one)
		if !deleted {
			want = append(want, updateCalls(value, "z")...)
		}
		slices.Sort(want)
		if one.allowsRepeats {
			made = slices.Compact(made)
		}
		if !slices.Equal(want, made) {
			r.failures[one.name] = fmt.Sprintf("%s: wanted %v,\n\tbut there were %v", one.name, want, made)
			continue
		}
		if deleted {
			continue
		}
		if difference := r.describeResidue(s, one); difference != "" {
			r.failures[one.name] = one.name + ": " + difference
		}
	}
}

// describeResidue says how the object differs from one that was never left in the middle of anything.
func (r *relay) describeResidue(s *observation, one row) string {
	object := s.objects[one.name]
	annotations := maps.Clone(object.GetAnnotations())
	if _, kopf := r.runner.(*relayKopf); kopf {
		delete(annotations, kopfPrefix+"handling-configuration") // which Kopf does not know
	}
	names := slices.Sorted(maps.Keys(annotations))
	result, _, _ := unstructured.NestedString(object.Object, "status", "c1", "by")
	switch {
	case !slices.Equal(names, []string{"example.org/note", lastHandled}):
		return fmt.Sprintf("there are the annotations %v", names)
	case !isFullyHandled(object, "z") || field(object) != "z" || result != "anybody":
		return fmt.Sprintf("the object is %v", object.Object)
	case len(object.GetFinalizers()) != 0:
		return fmt.Sprintf("there are the finalizers %v", object.GetFinalizers())
	}
	return ""
}

// callsOf are those of a row that were not cut, sorted.
func callsOf(calls []call, one row) (made []string) {
	for _, c := range calls {
		id, _, _ := strings.Cut(c.ID, "/")
		switch {
		case c.Name != one.name || c.Action == "stopping":
		case id == "w":
			made = append(made, "w")
		case c.Action == "return":
			made = append(made, fmt.Sprintf("%s %s %s→%s", id, c.Reason, c.Old, c.New))
		}
	}
	slices.Sort(made)
	return made
}

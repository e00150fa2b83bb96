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
	rows   []row
	number int
	runner runner
	past   []call            // of former lives
	failed map[string]string // why rows are given up
}

var _ = Describe("Changes", func() {
	DescribeTable("go on where the other side was killed",
		func(ctx context.Context, rows func() []row, one, other func() runner) {
			r := &relay{
				cluster: cluster{fmt.Sprintf("relay-%d-%d", GinkgoRandomSeed(), time.Now().UnixNano())}, rows: rows(),
				failed: map[string]string{},
			}
			Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})).To(Succeed())
			for r.number = range legs {
				r.run(ctx, one())
				one, other = other, one
			}
			r.number = legs
			r.last(ctx, one())
			r.judge(ctx)
			Expect(slices.Sorted(maps.Values(r.failed))).To(BeEmpty())
		},
		Entry("changes, begun by ours", changeRows, newOurs, newKopf),
		Entry("changes, begun by Kopf", changeRows, newKopf, newOurs),
		Entry("deletions, begun by ours", deletionRows, newOurs, newKopf),
		Entry("deletions, begun by Kopf", deletionRows, newKopf, newOurs),
		Entry("daemons, begun by ours", daemonRows, newOurs, newKopf),
		Entry("daemons, begun by Kopf", daemonRows, newKopf, newOurs),
		Entry("objects held in the background alone, begun by ours", backgroundRows, newOurs, newKopf),
		Entry("objects held in the background alone, begun by Kopf", backgroundRows, newKopf, newOurs),
	)
})

func newOurs() runner { return &relayOurs{} }
func newKopf() runner { return &relayKopf{} }

// run is one life, up to its death in the middle of everything.
func (r *relay) run(ctx context.Context, side runner) {
	GinkgoHelper()
	r.begin(side)
	if r.number == 0 {
		for _, one := range r.rows {
			Expect(api.Create(ctx, example(r.namespace, one.name, one.labels))).To(Succeed())
		}
	}
	r.await(ctx, "not ended: the work of the life before", r.ready, func(one row) {
		if own := one.leg(r.number); own.at != unseen {
			r.change(ctx, one, own.change)
		}
	})
	r.await(ctx, "not reached", r.reached, nil)
	side.kill()
	r.past = append(r.past, side.calls()...)
	for _, one := range r.alive() {
		own := one.leg(r.number)
		if own.at == unseen {
			r.change(ctx, one, own.change)
		}
		r.change(ctx, one, own.after)
	}
}

// last is the final life, which completes all work and handles one more edit of each object.
func (r *relay) last(ctx context.Context, side runner) {
	GinkgoHelper()
	r.begin(side)
	r.await(ctx, "not ended in the last life", r.ready, func(one row) {
		if _, deleted := one.during(legs); !deleted {
			r.edit(ctx, one.name, "z")
		}
	})
	r.await(ctx, "not ended finally", func(one row, s *sight) bool {
		_, deleted := one.during(legs)
		return deleted || closed(s.objects[one.name], "z")
	}, nil)
	r.create(ctx, "sentinel")
	r.handled(ctx, "sentinel", "a")
	r.edit(ctx, "sentinel", "b")
	r.handled(ctx, "sentinel", "b")
	side.kill()
	r.past = append(r.past, side.calls()...)
}

func (r *relay) begin(side runner) {
	GinkgoHelper()
	By(fmt.Sprintf("life %d: %T", r.number, side))
	plan := map[string]string{}
	for _, one := range r.rows {
		one.planned(r.number, plan)
	}
	r.runner = side
	side.start(r.namespace, plan)
}

func (r *relay) change(ctx context.Context, one row, change string) {
	GinkgoHelper()
	switch change {
	case creation, onward:
	case deletion:
		Expect(api.Delete(ctx, example(r.namespace, one.name, nil))).To(Succeed())
	default:
		r.edit(ctx, one.name, change)
	}
}

// alive are the rows that are not given up.
func (r *relay) alive() (rows []row) {
	for _, one := range r.rows {
		if r.failed[one.name] == "" {
			rows = append(rows, one)
		}
	}
	return rows
}

// await waits until it is so with each row, and does something with it then. Those with which nothing happens any more
// are given up.
func (r *relay) await(ctx context.Context, failure string, is func(one row, s *sight) bool, then func(row)) {
	GinkgoHelper()
	waiting, deadline := r.alive(), time.Now().Add(patience)
	for len(waiting) > 0 && time.Now().Before(deadline) {
		s := r.look(ctx)
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(one row) bool {
			met := is(one, s)
			if met && then != nil {
				then(one)
			}
			return met
		})
		if len(waiting) < before {
			deadline = time.Now().Add(patience)
		}
		time.Sleep(200 * time.Millisecond) // between two looks at the real API server
	}
	for _, one := range waiting {
		text, _ := json.Marshal(r.look(ctx).objects[one.name])
		r.failed[one.name] = fmt.Sprintf(
			"%s: life %d: %s %s: %s %s", one.name, r.number, failure, one.leg(r.number).at,
			callsOf(r.runner.calls(), one), text,
		)
	}
}

// judge compares all that was done with what the row wants.
func (r *relay) judge(ctx context.Context) {
	GinkgoHelper()
	s := r.look(ctx)
	for _, one := range r.alive() {
		value, deleted := one.during(legs)
		want, made := slices.Clone(one.want), callsOf(r.past, one)
		if !deleted {
			want = append(want, updated(value, "z")...)
		}
		slices.Sort(want)
		if one.loose {
			made = slices.Compact(made)
		}
		if !slices.Equal(want, made) {
			r.failed[one.name] = fmt.Sprintf("%s: wanted %v,\n\tbut there were %v", one.name, want, made)
			continue
		}
		if deleted {
			continue
		}
		if difference := r.unlike(s, one); difference != "" {
			r.failed[one.name] = one.name + ": " + difference
		}
	}
}

// unlike says how the object differs from one that was never left in the middle of anything.
func (r *relay) unlike(s *sight, one row) string {
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
	case !closed(object, "z") || field(object) != "z" || result != "anybody":
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
		case c.Name != one.name || c.Does == "stopping":
		case id == "w":
			made = append(made, "w")
		case c.Does == "return":
			made = append(made, fmt.Sprintf("%s %s %s→%s", id, c.Reason, c.Old, c.New))
		}
	}
	slices.Sort(made)
	return made
}

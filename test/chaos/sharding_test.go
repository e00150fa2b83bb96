package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// sharedRanges is the number of ranges.
const sharedRanges = 16

// TestSharedObjects shows with replicas that share the objects, killed, frozen, cut off, joining and leaving, with
// clocks that are a minute apart, and with an API server that restarts: each edit is handled, no two replicas act on
// an object, only the holder of a range writes to its objects, handlers are repeated only after a disturbance of their
// process, and no range is without an owner for more than five seconds after the lease duration.
func TestSharedObjects(t *testing.T) {
	for name, gate := range map[string]string{
		"filtered by the API server": "ShardedListAndWatch=true",
		"filtered by the replicas":   "ShardedListAndWatch=false",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSharedRun(t, gate).run()
		})
	}
}

// sharedRun is one play of replicas that share the objects.
type sharedRun struct {
	t      *testing.T
	server *apiServer
	ledger *ledger
	fleet  *fleet
	steps  []step
	ranges map[string]int // the range of each object
	count  int            // how many objects
	rate   int            // edits per second

	mu     sync.Mutex
	joined int
	edits  int
}

func newSharedRun(t *testing.T, gate string) *sharedRun {
	t.Helper()
	number := seed(t)
	r := &sharedRun{
		t: t, server: startAPIServer(t, gate), ledger: newLedger(t), ranges: map[string]int{},
		count: number64(t, "CHAOS_OBJECTS", 150), rate: number64(t, "CHAOS_EDITS", 10),
	}
	r.steps = newSharedPlan(number, 3, duration(t, "CHAOS_FOR", 20*time.Second))
	t.Logf("CHAOS_SEED=%d; %s", number, plan{steps: r.steps})
	r.fleet = &fleet{t: t, ledger: r.ledger, host: r.server.config.Host, kubeconfig: r.server.kubeconfig, spared: 1}
	r.inParallel(r.count, func(i int) error { return r.server.api.Create(t.Context(), newObject(objectName(i))) })
	objects, err := r.server.list(t.Context())
	r.server.must(err)
	for _, one := range objects {
		r.ranges[one.GetName()] = sharding.IndexOf(one.GetUID(), sharedRanges)
	}
	return r
}

// number64 is a variable of the environment, or the default.
func number64(t *testing.T, name string, fallback int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return fallback
	}
	number, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

func objectName(i int) string { return fmt.Sprintf("o%d", i) }

// inParallel calls a function for all numbers below count.
func (r *sharedRun) inParallel(count int, do func(i int) error) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}

// replica returns the settings of a replica.
func (r *sharedRun) replica(name string, clock time.Duration) operator {
	return operator{Identity: name, ClockOffset: clock, Shards: sharedRanges}
}

// run plays the plan while objects are edited, waits until all edits are handled, and judges the history.
func (r *sharedRun) run() {
	for i, clock := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		r.fleet.join(r.replica(fmt.Sprint("r", i), clock), false)
	}
	r.wait("the objects are not handled", r.isQuiet)
	ctx, stop := context.WithCancel(r.t.Context())
	var editing sync.WaitGroup
	editing.Go(func() { r.edit(ctx) })
	r.playShared(r.steps)
	time.Sleep(2 * sharedLease / 3) // edits after the last step show whether all ranges have owners
	stop()
	editing.Wait()
	r.wait("the last edits are not handled", r.isQuiet)
	for _, m := range r.fleet.members {
		m.terminate(syscall.SIGTERM)
	}
	r.judge(r.server.writes())
}

// edit edits objects at random.
func (r *sharedRun) edit(ctx context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(r.rate))
	defer ticker.Stop()
	for change := int64(1); ; change++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		name := objectName(rand.IntN(r.count)) //nolint:gosec // no secret
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"change":%d}}`, change))
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err := r.server.api.Patch(short, newObject(name), patch)
		cancel()
		if err != nil {
			continue // the API server restarts
		}
		r.edits++
		r.ledger.add(report{Kind: "edit", By: testIdentity, Object: name, Change: change})
	}
}

// isQuiet reports whether each object was handled as it is now.
func (r *sharedRun) isQuiet() bool {
	ended := map[string]bool{}
	for _, e := range r.ledger.history() {
		if e.Kind == "end" && e.Text == outcomeDone {
			ended[fmt.Sprint(e.Object, " ", e.Change)] = true
		}
	}
	changes, err := r.server.changes(r.t.Context())
	if err != nil {
		return false // a busy machine, or the API server has just started
	}
	for name, change := range changes {
		if !ended[fmt.Sprint(name, " ", change)] {
			return false
		}
	}
	return true
}

func (r *sharedRun) wait(complaint string, until func() bool) {
	r.t.Helper()
	for end := time.Now().Add(waitTimeout); !until(); time.Sleep(20 * tick) {
		if time.Now().After(end) {
			r.save()
			r.t.Fatalf("%s, for %s", complaint, waitTimeout)
		}
	}
}

// save writes the history to the file of CHAOS_HISTORY.
func (r *sharedRun) save() {
	if file := os.Getenv("CHAOS_HISTORY"); file != "" {
		if err := os.WriteFile(file, []byte(lines(r.ledger.history())), 0o600); err != nil {
			r.t.Error(err)
		}
	}
}

// list returns all objects.
func (s *apiServer) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("KopfExampleList")
	err := s.api.List(ctx, list)
	return list.Items, err
}

// handleShared takes a moment, and writes to the object now and then.
func (o *operatorProcess) handleShared(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
	change, _, _ := unstructured.NestedInt64(c.Object.Object, "spec", "change")
	about := report{
		By: o.Identity, Call: fmt.Sprintf("%s-%d", o.Identity, o.calls.Add(1)), Object: c.Object.GetName(),
		Change: change,
	}
	o.say(about, "begin", "")
	select {
	case <-ctx.Done():
		o.say(about, "end", context.Cause(ctx).Error())
		return ctx.Err()
	case <-time.After(time.Duration(50+rand.IntN(300)) * time.Millisecond): //nolint:gosec // no secret
	}
	if rand.IntN(4) == 0 { //nolint:gosec // no secret
		o.say(about, "writing", about.Call)
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"mark":%q}}`, about.Call))
		if err := c.Client.Patch(ctx, newObject(about.Object), patch); err != nil {
			o.say(about, "refused", err.Error())
			o.say(about, "end", err.Error())
			return err
		}
		o.say(about, "wrote", about.Call)
	}
	o.say(about, "end", outcomeDone)
	return nil
}

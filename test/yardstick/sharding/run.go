package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
)

// userName is the API user of all replicas.
const userName = "yardstick-sharding"

// trial is what runs on one control plane.
type trial struct {
	options

	cluster *cluster.Cluster
	folder  string
	round   int // of edits
	base    figures
}

// run measures on both API servers.
func (o options) run(ctx context.Context) error {
	say("%d objects of about %d bytes, %d ranges; bytes received are those of TCP; heap is after a collection",
		o.objects, o.size, o.shards)
	for gate := range strings.SplitSeq(o.gates, ",") {
		if err := o.runOn(ctx, gate); err != nil {
			return err
		}
	}
	return nil
}

// runOn measures on an API server with a value of the feature gate.
func (o options) runOn(ctx context.Context, gate string) (err error) {
	folder, err := os.MkdirTemp("", "yardstick-sharding-*")
	if err != nil {
		return fmt.Errorf("making a folder for logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	watching, end := context.WithCancel(ctx)
	defer end()
	t := &trial{options: o, folder: folder}
	t.cluster, err = cluster.Start(watching, cluster.Options{
		Assets: o.assets, CRD: filepath.Join(o.root, "config", "crd", "kopfexamples.yaml"), Folder: folder,
		Users: []string{userName}, Progress: os.Stderr,
		FeatureGates: []string{"ShardedListAndWatch=" + gate},
	})
	if err != nil {
		return err
	}
	defer func() {
		end() // otherwise the API server waits for the watches
		err = errors.Join(err, t.cluster.Stop())
	}()
	say("\n== kube-apiserver with ShardedListAndWatch=%s", gate)
	if err := t.createObjects(ctx); err != nil {
		return err
	}
	if err := t.measureShares(ctx); err != nil {
		return err
	}
	return t.measureThroughput(ctx)
}

// createObjects creates all objects, and has one process without sharding handle them.
func (t *trial) createObjects(ctx context.Context) error {
	one, err := t.start(1, role{Workers: 100})
	if err != nil {
		return err
	}
	defer one.stop()
	if err := t.cluster.Create(ctx, 0, t.objects, t.size); err != nil {
		return err
	}
	return t.await(ctx, t.objects, func(c cluster.Counts) int { return c.Created })
}

// measureShares measures one process without sharding, one replica with all ranges, and several replicas.
func (t *trial) measureShares(ctx context.Context) error {
	say("%-34s %12s %10s %10s %14s %10s", "", "received MB", "heap MB", "RSS MB", "MB of edits", "Leases/s")
	for _, c := range []struct {
		name     string
		replicas int
		shards   int
	}{
		{"one process without sharding", 1, 0}, {"one replica with all ranges", 1, t.shards},
		{"replica", t.replicas, t.shards},
	} {
		if err := t.measureShare(ctx, c.name, c.replicas, role{Shards: c.shards, Workers: 100}); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// measureShare starts replicas, and measures them when they have their shares, and while objects are edited.
func (t *trial) measureShare(ctx context.Context, name string, count int, r role) error {
	g, err := t.start(count, r)
	if err != nil {
		return err
	}
	defer g.stop()
	if err := g.settle(ctx); err != nil {
		return err
	}
	before, err := g.measure(ctx)
	if err != nil {
		return err
	}
	if err := t.edit(ctx, t.edits, func() error { return nil }); err != nil {
		return err
	}
	after, err := g.measure(ctx)
	if err != nil {
		return err
	}
	rate, err := t.leaseRequests(ctx)
	if err != nil {
		return err
	}
	if r.Shards == 0 {
		t.base = before[0]
		t.base.edits = after[0].received - before[0].received
	}
	for i := range before {
		label := name
		if len(before) > 1 {
			label = fmt.Sprintf("%s %d of %d", name, i+1, count)
		}
		f := before[i]
		f.edits = after[i].received - f.received
		say("%-34s %5.1f (%4.2f) %s %s %7.2f (%4.2f) %9.2f", label, f.received/megabyte, f.received/t.base.received,
			ratio(f.heap, t.base.heap), ratio(f.resident, t.base.resident), f.edits/megabyte, f.edits/t.base.edits,
			rate/float64(count))
	}
	return nil
}

// megabyte is the unit of the table.
const megabyte = 1 << 20

// ratio returns a number of bytes, and in parentheses its ratio to that of one process without sharding.
func ratio(bytes, base float64) string {
	return fmt.Sprintf("%5.1f (%4.2f)", bytes/megabyte, bytes/base)
}

// edit changes the first objects, calls a function, and waits until the changes are handled.
func (t *trial) edit(ctx context.Context, count int, then func() error) error {
	t.round++
	value := fmt.Sprint("edit-", t.round)
	if err := t.cluster.ChangeAll(ctx, count, value); err != nil {
		return err
	}
	if err := then(); err != nil {
		return err
	}
	return t.await(ctx, count, func(c cluster.Counts) int { return c.Seen[value] })
}

// await waits until a number of objects have reached a state.
func (t *trial) await(ctx context.Context, want int, number func(cluster.Counts) int) error {
	return t.cluster.Tally.Await(ctx, want, number, func(now int) {
		fmt.Fprintf(os.Stderr, "  %d of %d objects are handled\n", now, want)
	})
}

// leaseRequests returns the requests to Leases per second of all replicas while nothing happens.
func (t *trial) leaseRequests(ctx context.Context) (float64, error) {
	const window = 20 * time.Second
	if _, err := t.cluster.Requests(ctx, userName); err != nil {
		return 0, err
	}
	time.Sleep(window)
	requests, err := t.cluster.Requests(ctx, userName)
	total := 0
	for _, verb := range []string{"list", "get", "create", "update", "patch", "delete"} {
		total += requests[verb+" leases"]
	}
	return float64(total) / window.Seconds(), err
}

// measureThroughput measures how many objects per second are handled by handlers that take 100 ms. The objects are
// edited before the replicas start, and the first and the last tenth of the objects do not count.
func (t *trial) measureThroughput(ctx context.Context) error {
	if t.handled == 0 {
		return nil
	}
	say("objects handled per second, by handlers that take 100 ms, %d at once in a replica:", t.limit)
	for count := 1; count <= t.replicas; count *= 2 {
		var g *group
		r := role{Shards: t.shards, Workers: t.limit, Takes: 100 * time.Millisecond}
		err := t.edit(ctx, t.handled, func() (err error) {
			if g, err = t.start(count, r); err != nil {
				return err
			}
			return t.timeMiddle(ctx, count)
		})
		if g != nil {
			g.stop()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// timeMiddle prints the rate at which the edits of this round are handled.
func (t *trial) timeMiddle(ctx context.Context, count int) error {
	value := fmt.Sprint("edit-", t.round)
	from, to := t.handled/10, t.handled-t.handled/10
	var first time.Time
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		switch seen := t.cluster.Tally.Counts().Seen[value]; {
		case seen >= to:
			say("  %d replicas: %.0f", count, float64(to-from)/time.Since(first).Seconds())
			return nil
		case seen >= from && first.IsZero():
			first, from = time.Now(), seen
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.New("the edits are not handled")
}

package sharding_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEdits shows that edits and removals of all kinds of Leases never open two gates of a range, and stop it for a
// limited time only.
func TestEdits(t *testing.T) {
	spec := func(name string, fields map[string]any) func(g *group) {
		return func(g *group) {
			g.server.Edit(leases, layoutLease.Namespace, name, func(object map[string]any) {
				for key, value := range fields {
					object["spec"].(map[string]any)[key] = value
				}
			})
		}
	}
	remove := func(match string) func(g *group) {
		return func(g *group) {
			for _, one := range g.server.ObjectsOf(leases) {
				name := one["metadata"].(map[string]any)["name"].(string)
				if strings.Contains(name, match) {
					g.server.Delete(leases, layoutLease.Namespace, name)
				}
			}
		}
	}
	note := func(g *group) {
		g.server.Edit(leases, layoutLease.Namespace, "demo-range-4-1", func(object map[string]any) {
			object["metadata"].(map[string]any)["annotations"] = map[string]any{"note": fmt.Sprint(time.Now())}
		})
	}
	unlabel := func(match string) func(g *group) {
		return func(g *group) {
			for _, one := range g.server.ObjectsOf(leases) {
				if name := one["metadata"].(map[string]any)["name"].(string); strings.Contains(name, match) {
					g.server.Edit(leases, layoutLease.Namespace, name, func(object map[string]any) {
						delete(object["metadata"].(map[string]any), "labels")
					})
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		edit   func(g *group)
	}{
		"RangeUnlabeled":   {"the label of a range is set again", unlabel("-range-4-1")},
		"ReplicaUnlabeled": {"replicas set the labels of their Leases again", unlabel("-replica-")},
		"LayoutUnlabeled":  {"a layout without its label counts", unlabel("demo")},
		"RangeRemoved":     {"a removed range is made again", remove("-range-4-1")},
		"RangesRemoved":    {"all removed ranges are made again", remove("-range-")},
		"ReplicasRemoved":  {"replicas make their Leases again", remove("-replica-")},
		"LayoutRemoved":    {"the layout is made again", func(g *group) { g.server.Delete(leases, "default", "demo") }},
		"AllRemoved":       {"everything is made again", remove("demo")},
		"RangeEmptied":     {"a range without a holder is not a released one", spec("demo-range-4-1", holder(""))},
		"RangeHanded":      {"another replica is made the holder", spec("demo-range-4-1", holder("b"))},
		"RangeLost":        {"a holder that does not exist is replaced", spec("demo-range-4-1", holder("nobody"))},
		"RangeNoted":       {"a comment does not take the range away", note},
		"LayoutEmptied":    {"a layout without a holder is not a released one", spec("demo", holder(""))},
		"LayoutTaken":      {"a holder that does not exist is replaced", spec("demo", holder("nobody"))},
		"LayoutNumber":     {"an edited number does not count", spec("demo", holder("shards-2"))},
		"LayoutEndless": {"a long duration does not count", spec("demo", map[string]any{
			"holderIdentity": "x", "leaseDurationSeconds": int64(1e6)})},
	} {
		for when, mode := range map[string]int32{"": works, "AndCut": refuses} {
			t.Run(name+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGroup(t)
					defer g.end()
					a := g.start("a", 4)
					g.start("b", 4)
					g.start("c", 4)
					g.pass(40 * time.Second)
					// A replica without a connection does not notice the edit.
					a.mode.Store(mode)
					tc.edit(g)
					g.pass(2 * time.Minute)
					want := []int{1, 1, 2}
					if mode != works {
						want = []int{2, 2}
					}
					total := 0
					for _, n := range g.open() {
						total += n
					}
					if total != 4 {
						g.requireOpen(tc.reason, want...)
					}
					// Edits that do not end stop all replicas at worst.
					for range 30 {
						tc.edit(g)
						g.pass(700 * time.Millisecond)
					}
				})
			})
		}
	}
}

func holder(name string) map[string]any { return map[string]any{"holderIdentity": name} }

// TestStrippedLabels shows that a replica does not act, and logs why, if the cluster removes the label of its Leases.
func TestStrippedLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		g.server.AddReviewer(func(
			_ context.Context, mutating bool, r *admissionv1.AdmissionRequest,
		) (object []byte, warnings []string, err error) {
			var stored unstructured.Unstructured
			if !mutating || stored.UnmarshalJSON(r.Object.Raw) != nil {
				return nil, nil, nil
			}
			stored.SetLabels(nil)
			object, err = stored.MarshalJSON()
			return object, nil, err
		}, func() bool { return true })
		a := g.start("a", 4)
		g.pass(time.Minute)
		g.requireOpen("without the label, replicas do not see each other")
		if a.logs("does not keep the label") != 1 {
			t.Errorf("the reason must be logged once: %q", a.lines)
		}
	})
}

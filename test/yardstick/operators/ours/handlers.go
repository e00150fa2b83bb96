package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// interval is the interval of the timers.
const interval = 5 * time.Second

// handlers counts timer calls over all objects.
type handlers struct{ ticks atomic.Int64 }

// register registers the same handlers for objects with and without a Go type.
func register[T client.Object](h *handlers, examples kopf.Selection[T], scenario string, field func(T) string) {
	examples.OnCreate("create_fn", func(_ context.Context, c *kopf.Change[T]) error {
		c.SetResult(map[string]any{"message": "created " + c.Object.GetName()})
		return nil
	})
	examples.OnUpdate("update_fn", func(_ context.Context, c *kopf.Change[T]) error {
		seen := field(c.Object)
		if scenario == "latency" {
			if err := process.WriteLatency(os.Stdout, seen, time.Now()); err != nil {
				return err
			}
		}
		c.SetResult(map[string]any{"seen": seen})
		return nil
	})
	if scenario == "timers" {
		examples.Timer("tick", interval, func(context.Context, *kopf.Task[T]) error {
			h.ticks.Add(1)
			return nil
		})
		return
	}
	examples.OnDelete("delete_fn", func(context.Context, *kopf.Change[T]) error { return nil })
}

func (h *handlers) writeTicks() error {
	return process.WriteFigure(os.Stdout, "ticks", float64(h.ticks.Load()))
}

// registerPods maintains an index of the pods by node, and prints a line when it has seen count pods.
func registerPods(op *kopf.Operator, count int) {
	pods := kopf.For(op, &corev1.Pod{})
	kopf.NewIndex(pods, "by-node", func(_ context.Context, p *corev1.Pod) (map[string]string, error) {
		return map[string]string{p.Spec.NodeName: p.Name}, nil
	})
	var seen atomic.Int64
	pods.OnEvent("seen", func(context.Context, *kopf.WatchEvent[*corev1.Pod]) error {
		if seen.Add(1) == int64(count) {
			return process.WriteFigure(os.Stdout, "all", float64(count))
		}
		return nil
	})
}

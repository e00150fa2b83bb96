package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap/zapcore"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// roleVariable is the environment variable that makes this program a replica: its role as JSON.
const roleVariable = "SHARDING_REPLICA"

// role is the work of a replica.
type role struct {
	Shards  int           // 0 does not share
	Workers int           // how many objects are handled at once
	Takes   time.Duration // how long a handler takes
}

// received counts the bytes of all connections to the API server, as they come: compressed and encrypted.
var received atomic.Int64

// countedConn is one of these connections.
type countedConn struct{ net.Conn }

func (c countedConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	received.Add(int64(n))
	return n, err
}

func runReplica(text string) int {
	ctrl.SetLogger(zap.New(zap.Level(zapcore.InfoLevel)))
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		go printFigures()
		err = r.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// printFigures prints the figures of this process whenever it gets SIGUSR1. The heap is that of reachable objects.
func printFigures() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	for range signals {
		var memory runtime.MemStats
		bytes := received.Load()
		debug.FreeOSMemory()
		runtime.ReadMemStats(&memory)
		_ = errors.Join(process.WriteFigure(os.Stdout, "heap", float64(memory.HeapAlloc)),
			process.WriteFigure(os.Stdout, "received", float64(bytes)))
	}
}

func (r role) run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).
			DialContext(ctx, network, address)
		return countedConn{conn}, err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: apiruntime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	op := kopf.New("sharding.example.org", kopf.Settings{
		Queueing: kopf.QueueingSettings{WorkerLimit: r.Workers}, Sharding: kopf.ShardingSettings{Shards: r.Shards},
	})
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	handle := func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.Takes):
		}
		c.SetResult(map[string]any{"seen": kopf.GetFieldOr(c.Object, "spec.field", ""), "message": "made"})
		return nil
	}
	examples.OnCreate("create_fn", handle)
	examples.OnUpdate("update_fn", handle)
	if err := op.SetupWithManager(m); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

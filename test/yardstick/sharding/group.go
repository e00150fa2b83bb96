package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// figures are those of one process, in bytes.
type figures struct{ received, heap, resident, edits float64 }

// group is some replicas that run at the same time.
type group struct {
	trial     *trial
	role      role
	processes []*process.Process
	measured  int // how often
}

// start starts replicas.
func (t *trial) start(count int, r role) (*group, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &group{trial: t, role: r}
	for i := range count {
		variables := []string{
			roleVariable + "=" + string(text), "KUBECONFIG=" + t.cluster.Kubeconfig(userName),
			fmt.Sprint("POD_ID=replica-", i),
		}
		log := filepath.Join(t.folder, fmt.Sprintf("replica-%d.log", i))
		p, err := process.Start([]string{program}, variables, log)
		if err != nil {
			g.stop()
			return nil, err
		}
		g.processes = append(g.processes, p)
	}
	return g, nil
}

// stop ends all replicas.
func (g *group) stop() {
	var ending sync.WaitGroup
	for _, p := range g.processes {
		ending.Go(p.Stop)
	}
	ending.Wait()
}

// settle waits until the replicas have their shares of all objects, and do nothing any more.
func (g *group) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("the replicas do not come to rest"))
	defer cancel()
	for g.role.Shards > 0 {
		isShared, err := g.isShared(ctx)
		if err != nil {
			return err
		}
		if isShared {
			break
		}
		if err := g.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	for quiet, last := 0, time.Duration(0); quiet < 5; {
		used := time.Duration(0)
		for _, p := range g.processes {
			usage, err := p.Usage()
			if err != nil {
				return err
			}
			used += usage.CPU
		}
		if quiet++; used-last > time.Duration(len(g.processes))*100*time.Millisecond {
			quiet = 0
		}
		last = used
		if err := g.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// isShared reports whether the Leases show that all replicas have equal numbers of ranges, and all objects.
func (g *group) isShared(ctx context.Context) (bool, error) {
	config, err := clientcmd.BuildConfigFromFlags("", g.trial.cluster.Kubeconfig(userName))
	if err != nil {
		return false, err
	}
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return false, err
	}
	name := election.LeaseName("sharding.example.org", nil, nil)
	all, err := sharding.ReadStatus(ctx, leases, types.NamespacedName{Namespace: "default", Name: name})
	if err != nil {
		return false, err
	}
	status := all["default"]
	objects, most := 0, (g.role.Shards+len(g.processes)-1)/len(g.processes)
	for _, one := range status.Replicas {
		if len(one.Ranges) > most {
			return false, nil
		}
		objects += one.Load.Objects
	}
	return len(status.Replicas) == len(g.processes) && len(status.Unowned) == 0 && objects >= g.trial.objects, nil
}

// measure returns the present figures of all replicas.
func (g *group) measure(ctx context.Context) (all []figures, err error) {
	g.measured++
	for _, p := range g.processes {
		usage, err := p.Usage()
		if err != nil {
			return nil, err
		}
		if err := p.Signal(syscall.SIGUSR1); err != nil {
			return nil, err
		}
		received, err := p.Await(ctx, "received", g.measured)
		if err != nil {
			return nil, err
		}
		heap, err := p.Await(ctx, "heap", g.measured)
		if err != nil {
			return nil, err
		}
		all = append(all, figures{
			received: received[g.measured-1].Value, heap: heap[g.measured-1].Value, resident: float64(usage.Resident),
		})
	}
	return all, nil
}

// pause waits while all replicas run.
func (g *group) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, p := range g.processes {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

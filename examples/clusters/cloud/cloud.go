// Package cloud fakes a cloud in memory, with networks, control planes and incidents. Like a real cloud, it does not
// depend on the operator or on Kubernetes objects. The program in the folder above uses it.
package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// startDuration is the time that a control plane needs to start, or to restart with another version.
const startDuration = 500 * time.Millisecond

// Cloud has the networks and control planes by the names of their clusters.
type Cloud struct {
	mu        sync.Mutex
	networks  map[string]network
	planes    map[string]plane
	incidents map[string]chan string
	snapshots int
}

type network struct {
	cidr        string
	allowedFrom []string
}

type plane struct {
	version string
	started time.Time
}

// ControlPlane is the visible state of a control plane.
type ControlPlane struct {
	Endpoint string
	Version  string
	// Ready is false while it starts.
	Ready bool
}

// New returns an empty cloud.
func New() *Cloud {
	return &Cloud{networks: map[string]network{}, planes: map[string]plane{}, incidents: map[string]chan string{}}
}

// EnsureNetwork creates a network, unless it exists.
func (c *Cloud) EnsureNetwork(_ context.Context, cluster, cidr string) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.networks[cluster]; ok && n.cidr != cidr {
		return "", fmt.Errorf("network of cluster %s has range %s already", cluster, n.cidr)
	}
	c.networks[cluster] = network{cidr: cidr}
	return "net-" + cluster, nil
}

// AllowFrom restricts who may connect to the network.
func (c *Cloud) AllowFrom(_ context.Context, cluster string, ranges []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[cluster]
	n.allowedFrom = ranges
	c.networks[cluster] = n
	return nil
}

// DeleteNetwork removes a network, if it exists. It returns an error if the network is in use.
func (c *Cloud) DeleteNetwork(_ context.Context, cluster string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, used := c.planes[cluster]; used {
		return fmt.Errorf("network of cluster %s has a control plane still", cluster)
	}
	delete(c.networks, cluster)
	return nil
}

// EnsureControlPlane creates a control plane, or restarts it with another version. It does not wait: call it again
// until the control plane is ready.
func (c *Cloud) EnsureControlPlane(_ context.Context, cluster, version string) (ControlPlane, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.planes[cluster]
	if p.version != version {
		if ok {
			c.report(cluster, "the control plane restarts with version "+version)
		}
		p = plane{version: version, started: time.Now()}
		c.planes[cluster] = p
	}
	return ControlPlane{
		Endpoint: fmt.Sprintf("https://%s.clusters.example.org:6443", cluster),
		Version:  version, Ready: time.Since(p.started) >= startDuration,
	}, nil
}

// DeleteControlPlane removes a control plane, if it exists.
func (c *Cloud) DeleteControlPlane(_ context.Context, cluster string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.planes, cluster)
	return nil
}

// Snapshot stores a snapshot of a control plane.
func (c *Cloud) Snapshot(_ context.Context, cluster string) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.planes[cluster]; !ok {
		return "", fmt.Errorf("cluster %s has no control plane", cluster)
	}
	c.snapshots++
	return fmt.Sprintf("snap-%s-%d", cluster, c.snapshots), nil
}

// Incidents returns the incidents of a cluster. Each cluster has one listener.
func (c *Cloud) Incidents(cluster string) <-chan string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream(cluster)
}

func (c *Cloud) stream(cluster string) chan string {
	if c.incidents[cluster] == nil {
		c.incidents[cluster] = make(chan string, 16)
	}
	return c.incidents[cluster]
}

// report sends an incident to the listener. It drops the incident if the channel is full.
func (c *Cloud) report(cluster, incident string) {
	select {
	case c.stream(cluster) <- incident:
	default:
	}
}

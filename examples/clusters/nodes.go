package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const (
	labelRole     = "node-role.kubernetes.io/"
	labelSecurity = "pod-security.kubernetes.io/enforce"
)

// scale creates and deletes nodes until their number and version match the pool. It compares the desired state with the
// existing nodes, so it does the same for every reason.
func (o *operator) scale(ctx context.Context, c *PoolChange) error {
	wanted := nodeNames(c.Object)
	if c.Reason == kopf.ReasonDelete {
		wanted = nil
	}
	for _, name := range wanted {
		if err := boot(ctx, c, name); err != nil {
			return err
		}
	}
	if err := shutDownOthers(ctx, c, wanted); err != nil {
		return err
	}
	// The state of the nodes arrives with their events: the index is up to date before the next call.
	ready := int32(0)
	for node := range o.nodes.Values(c.Object.Name) {
		if node.ready && node.version == c.Object.Spec.Version {
			ready++
		}
	}
	if int(ready) != len(wanted) {
		return kopf.Temporary(fmt.Errorf("%d nodes are ready, %d are wanted", ready, len(wanted)), time.Second)
	}
	log.FromContext(ctx).Info("The pool is complete", "nodes", ready, "version", c.Object.Spec.Version)
	c.Patch(func(pool *v1.NodePool) { pool.Status.Nodes = ready })
	return nil
}

func nodeNames(pool *v1.NodePool) []string {
	names := make([]string, pool.Spec.Nodes)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", pool.Name, i)
	}
	return names
}

// boot creates a Node, in place of a machine that would start and join the cluster.
func boot(ctx context.Context, c *PoolChange, name string) error {
	node := &corev1.Node{}
	node.Name = name
	_, err := controllerutil.CreateOrPatch(ctx, c.Client, node, func() error {
		setLabel(node, v1.LabelCluster, c.Object.Spec.Cluster)
		setLabel(node, v1.LabelPool, c.Object.Name)
		node.Status.NodeInfo.KubeletVersion = "v" + c.Object.Spec.Version
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return nil
	})
	return err
}

// shutDownOthers lists the nodes from the API server, because the index may lack a node that has just joined.
func shutDownOthers(ctx context.Context, c *PoolChange, wanted []string) error {
	nodes := &corev1.NodeList{}
	if err := c.Client.List(ctx, nodes, client.MatchingLabels{v1.LabelPool: c.Object.Name}); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if slices.Contains(wanted, node.Name) {
			continue
		}
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, &node)); err != nil {
			return err
		}
	}
	return nil
}

func setLabel(object client.Object, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}

// node is the data of a Node in the index.
type node struct {
	name    string
	version string
	ready   bool
}

func byCluster(_ context.Context, pool *v1.NodePool) (map[string]string, error) {
	return map[string]string{pool.Spec.Cluster: pool.Name}, nil
}

func byPool(_ context.Context, n *corev1.Node) (map[string]node, error) {
	return map[string]node{n.Labels[v1.LabelPool]: {
		name: n.Name, version: strings.TrimPrefix(n.Status.NodeInfo.KubeletVersion, "v"), ready: isReady(n),
	}}, nil
}

func isReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// giveRole sets the label for the role, which a kubelet must not set itself. Event handlers are called for every event,
// so it patches a node only if the label is missing.
func giveRole(ctx context.Context, e *kopf.WatchEvent[*corev1.Node]) error {
	role := labelRole + e.Object.Labels[v1.LabelPool]
	_, known := e.Object.Labels[role]
	switch {
	case e.Type == kopf.WatchEventDeleted:
		log.FromContext(ctx).Info("A node has left")
	case !known:
		log.FromContext(ctx).Info("A node has joined", "ready", isReady(e.Object))
		e.Patch(func(n *corev1.Node) { setLabel(n, role, "") })
	}
	return nil
}

// secure sets a label of a Namespace. Built-in kinds are patched like custom ones.
func secure(ctx context.Context, c *kopf.Change[*corev1.Namespace]) error {
	log.FromContext(ctx).Info("The namespace is restricted", "cluster", c.Object.Labels[v1.LabelCluster])
	c.Patch(func(namespace *corev1.Namespace) { setLabel(namespace, labelSecurity, "restricted") })
	return nil
}

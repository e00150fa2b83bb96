package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod has about 2.7 KB of JSON without managed fields, a common size.
const (
	containers = 2
	variables  = 15
	nodes      = 100
)

// CreatePods creates count pods on a hundred nodes; none of them ever runs.
func (c *Cluster) CreatePods(ctx context.Context, count int) error {
	return c.each(ctx, "creating pods", 0, count, func(i int) error {
		if err := c.api.Create(ctx, pod(i)); err != nil {
			return fmt.Errorf("creating a pod: %w", err)
		}
		return nil
	})
}

// DeletePods deletes the pods of CreatePods one by one: the API server cannot delete tens of thousands of pods within
// the timeout of a single request, and its response then varies.
func (c *Cluster) DeletePods(ctx context.Context, count int) error {
	return c.each(ctx, "deleting pods", 0, count, func(i int) error {
		return c.remove(ctx, &corev1.Pod{ObjectMeta: podNamed(i)}, client.GracePeriodSeconds(0))
	})
}

func podNamed(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: fmt.Sprintf("pod-%06d", i), Namespace: Namespace}
}

func pod(i int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: podNamed(i),
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprint("node-", i%nodes),
			Volumes: []corev1.Volume{{
				Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			}},
		},
	}
	p.Labels = map[string]string{"app": fmt.Sprint("a", i%50), "tier": "web"}
	for k := range containers {
		one := corev1.Container{
			Name: fmt.Sprint("c", k), Image: "registry.example.org/team/app:v1.2.3",
			VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data"}},
		}
		for e := range variables {
			one.Env = append(one.Env, corev1.EnvVar{
				Name: fmt.Sprint("VARIABLE_", e), Value: fmt.Sprintf("value-%d-of-pod-%d", e, i),
			})
		}
		p.Spec.Containers = append(p.Spec.Containers, one)
	}
	return p
}

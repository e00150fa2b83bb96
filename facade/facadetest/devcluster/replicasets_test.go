package devcluster_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestPretendedReplicaSets shows that a Deployment gets a ReplicaSet for its present template, as Helm waits for it.
func TestPretendedReplicaSets(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{PretendReady: true})
	client := clientOf(t, cluster).AppsV1()
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	events, err := client.ReplicaSets("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	sets := replicaSets{t, events, map[string]*appsv1.ReplicaSet{}}
	web, err := client.Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := sets.await("web:1", 2)
	if !metav1.IsControlledBy(first, web) || first.Spec.Template.Labels["pod-template-hash"] == "" {
		t.Errorf("the ReplicaSet is %v, want one that the Deployment controls", first)
	}
	_, err = client.Deployments("default").Patch(t.Context(), "web", "application/strategic-merge-patch+json", []byte(
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets.await("web:1", 0)
	if second := sets.await("web:2", 2); second.UID == first.UID {
		t.Error("a new template must create a new ReplicaSet")
	}
	if err := client.Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			return
		}
	}
	t.Error("a ReplicaSet must be deleted with its Deployment before the watch ends")
}

// replicaSets holds the newest states of ReplicaSets by the images of their pods.
type replicaSets struct {
	t      *testing.T
	events watch.Interface
	known  map[string]*appsv1.ReplicaSet
}

// await waits until the ReplicaSet with an image has a number of ready replicas.
func (r replicaSets) await(image string, ready int32) *appsv1.ReplicaSet {
	r.t.Helper()
	isReady := func() bool {
		set := r.known[image]
		return set != nil && *set.Spec.Replicas == ready && set.Status.ReadyReplicas == ready &&
			set.Status.ObservedGeneration == set.Generation
	}
	for !isReady() {
		event, ok := <-r.events.ResultChan()
		if !ok {
			r.t.Fatalf("the ReplicaSet of %s must get %d ready replicas before the watch ends", image, ready)
		}
		if set, ok := event.Object.(*appsv1.ReplicaSet); ok {
			r.known[set.Spec.Template.Spec.Containers[0].Image] = set
		}
	}
	return r.known[image]
}

func TestAddressOfService(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	services := clientOf(t, cluster).CoreV1().Services("default")
	port := []corev1.ServicePort{{Port: 80}}
	for name, tc := range map[string]struct {
		reason     string
		spec       corev1.ServiceSpec
		hasAddress bool
	}{
		"plain": {"a service gets an address", corev1.ServiceSpec{Ports: port}, true},
		"headless": {"a headless service gets no address",
			corev1.ServiceSpec{Ports: port, ClusterIP: "None"}, false},
		"external": {"an external service gets no address",
			corev1.ServiceSpec{Type: "ExternalName", ExternalName: "x.org"}, false},
	} {
		made, err := services.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tc.spec,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if has := len(made.Spec.ClusterIPs) == 1; has != tc.hasAddress {
			t.Errorf("%s (%s): the addresses are %v", name, tc.reason, made.Spec.ClusterIPs)
		}
	}
}

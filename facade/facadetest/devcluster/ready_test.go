package devcluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

const podTemplate = `{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`

// readyKind is a kind that the cluster makes ready.
type readyKind struct {
	resource schema.GroupVersionResource
	kind     string
	spec     string
	// isReady reports whether kubectl and controllers consider the object ready.
	isReady func(object map[string]any) bool
	// change is a merge patch of the specification; empty if the kind does not allow one.
	change string
}

func nested(object map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	return value
}

// agrees reports whether all fields have the value, and the observed generation is the current one.
func agrees(object map[string]any, value any, paths ...string) bool {
	for _, path := range paths {
		if nested(object, path) != value {
			return false
		}
	}
	return nested(object, "status.observedGeneration") == nested(object, "metadata.generation")
}

func isTrue(object map[string]any, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}

// isRolledOut reports whether "kubectl rollout status" would end.
func isRolledOut(object map[string]any) bool {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, d); err != nil {
		return false
	}
	s := d.Status
	return d.Generation <= s.ObservedGeneration && s.UpdatedReplicas == *d.Spec.Replicas &&
		s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.UpdatedReplicas && s.ReadyReplicas == s.Replicas &&
		isTrue(object, "Available") && isTrue(object, "Progressing")
}

func readyKinds() []readyKind {
	apps := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: plural}
	}
	core := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: plural}
	}
	selecting := `{selector: {matchLabels: {a: b}}, template: ` + podTemplate + `%s}`
	return []readyKind{
		{apps("deployments"), "Deployment", fmt.Sprintf(selecting, ", replicas: 2"), isRolledOut,
			`{"spec":{"replicas":3}}`},
		{apps("replicasets"), "ReplicaSet", fmt.Sprintf(selecting, ", replicas: 2"), func(o map[string]any) bool {
			return agrees(o, nested(o, "spec.replicas"), "status.replicas", "status.readyReplicas",
				"status.availableReplicas", "status.fullyLabeledReplicas")
		}, `{"spec":{"replicas":3}}`},
		{apps("statefulsets"), "StatefulSet", fmt.Sprintf(selecting, ", serviceName: s"), func(o map[string]any) bool {
			return agrees(o, nested(o, "spec.replicas"), "status.replicas", "status.readyReplicas",
				"status.updatedReplicas", "status.currentReplicas", "status.availableReplicas") &&
				nested(o, "status.updateRevision") == nested(o, "status.currentRevision")
		}, `{"spec":{"replicas":3}}`},
		{apps("daemonsets"), "DaemonSet", fmt.Sprintf(selecting, ""), func(o map[string]any) bool {
			return agrees(o, nested(o, "status.desiredNumberScheduled"), "status.updatedNumberScheduled",
				"status.numberAvailable", "status.numberReady", "status.currentNumberScheduled")
		}, `{"spec":{"minReadySeconds":1}}`},
		{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job",
			`{completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}`,
			func(o map[string]any) bool {
				return isTrue(o, "Complete") && nested(o, "status.succeeded") == int64(2) &&
					nested(o, "status.completionTime") != nil
			}, ""},
		{core("pods"), "Pod", `{containers: [{name: c, image: i}]}`, func(o map[string]any) bool {
			return isTrue(o, "Ready") && nested(o, "status.phase") == string(corev1.PodRunning)
		}, ""},
		{core("persistentvolumeclaims"), "PersistentVolumeClaim",
			`{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, func(o map[string]any) bool {
				return nested(o, "status.phase") == string(corev1.ClaimBound) && nested(o, "spec.volumeName") != nil &&
					nested(o, "status.capacity.storage") == "1Gi"
			}, ""},
	}
}

// readyWatch watches one kind, and counts the changes of each object.
type readyWatch struct {
	t      *testing.T
	events watch.Interface
	writes map[string]int
}

// await reads events until the object fulfils the condition.
func (w *readyWatch) await(name string, isMet func(map[string]any) bool) {
	w.t.Helper()
	for event := range w.events.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			w.t.Fatalf("the watch must show an object, got %v", event.Object)
		}
		w.writes[object.GetName()]++
		if object.GetName() == name && isMet(object.Object) {
			return
		}
	}
	w.t.Fatalf("%s must be ready before the watch ends", name)
}

func TestPretendReady(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{PretendReady: true})
	client := dynamicClient(t, cluster)
	for _, kind := range readyKinds() {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			pretendOne(t, client.Resource(kind.resource).Namespace("default"), kind)
		})
	}
}

func pretendOne(t *testing.T, client dynamic.ResourceInterface, kind readyKind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	events, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	w := &readyWatch{t: t, events: events, writes: map[string]int{}}
	create := func(name string) {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
		object.SetGroupVersionKind(kind.resource.GroupVersion().WithKind(kind.kind))
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(kind.spec), &spec); err != nil {
			t.Fatal(err)
		}
		object.Object["spec"] = jsonValue(spec)
		made, err := client.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if kind.isReady(made.Object) {
			t.Error("a new object must not be ready at once")
		}
	}
	create("a")
	w.await("a", kind.isReady)
	want := 2 // the creation, and the status
	if kind.change != "" {
		_, err := client.Patch(ctx, "a", types.MergePatchType, []byte(kind.change), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.await("a", func(o map[string]any) bool {
			return nested(o, "metadata.generation") == int64(2) && kind.isReady(o)
		})
		want = 4
	}
	// While two other objects become ready one after the other, a further write to the first one would be noticed.
	for _, name := range []string{"b", "c"} {
		create(name)
		w.await(name, kind.isReady)
	}
	if w.writes["a"] != want {
		t.Errorf("the object must not be written again: got %d writes, want %d", w.writes["a"], want)
	}
}

// jsonValue converts the numbers of YAML to those of the API.
func jsonValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = jsonValue(value[name])
		}
	case []any:
		for i := range value {
			value[i] = jsonValue(value[i])
		}
	case float64:
		return int64(value)
	}
	return value
}

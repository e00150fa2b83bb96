package devcluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestProtobuf shows that clients with generated types can send and receive protobuf.
func TestProtobuf(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	config := cluster.Config()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := maps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"},
	}, metav1.CreateOptions{})
	if err != nil || made.UID == "" || made.Data["a"] != "b" {
		t.Fatalf("a created object must be returned with its uid: got %v, error %v", made, err)
	}
	event := <-events.ResultChan()
	if seen, ok := event.Object.(*corev1.ConfigMap); event.Type != watch.Added || !ok || seen.UID != made.UID {
		t.Errorf("the watch shows %s %v, want the created object %s", event.Type, event.Object, made.UID)
	}
	changed, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"a":"c"}}`), metav1.PatchOptions{})
	if err != nil || changed.Data["a"] != "c" {
		t.Errorf("the patch must be in the answer: got %v, error %v", changed, err)
	}
	if list, err := maps.List(ctx, metav1.ListOptions{Limit: 1}); err != nil || len(list.Items) != 1 {
		t.Errorf("the list must have one object: got %v, error %v", list, err)
	}
	uid := made.UID
	err = maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); err == nil {
		t.Error("the object must be gone after its deletion")
	}
}

package clients_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// protobufClient returns a client for protobuf, as controllers of Kubernetes itself use it.
func protobufClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestClientGo(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, c cluster, client kubernetes.Interface, namespace string){
		"Apply": checkApply, "Subresources": checkSubresources, "Chunks": checkChunks, "Bookmarks": checkBookmarks,
		"Informer": checkInformer,
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, devcluster.Options{}, func(t *testing.T, c cluster) {
				client := protobufClient(t, c.config)
				check(t, c, client, newNamespace(t, client))
			})
		})
	}
}

func checkApply(t *testing.T, _ cluster, client kubernetes.Interface, namespace string) {
	maps := client.CoreV1().ConfigMaps(namespace)
	want := coreapply.ConfigMap("applied", namespace).WithData(map[string]string{"color": "green"})
	if _, err := maps.Apply(t.Context(), want, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	other := coreapply.ConfigMap("applied", namespace).WithData(map[string]string{"color": "blue"})
	if _, err := maps.Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		t.Errorf("applying another manager's field: got %v, want a conflict", err)
	}
	got, err := maps.Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil || got.Data["color"] != "blue" {
		t.Errorf("a forced apply must change the value: got %v, %v", got, err)
	}
	extracted, err := coreapply.ExtractConfigMap(got, "two")
	if err != nil || extracted.Data["color"] != "blue" {
		t.Errorf("the fields of the forcing manager must be extracted: got %v, %v", extracted, err)
	}
}

// newDeployment returns a complete Deployment. The tests use only its selector and its template.
func newDeployment(namespace string) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	return appsapply.Deployment("web", namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(1).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().
			WithContainers(coreapply.Container().WithName("web").WithImage("web:1")))))
}

func checkSubresources(t *testing.T, _ cluster, client kubernetes.Interface, namespace string) {
	deployments := client.AppsV1().Deployments(namespace)
	options := metav1.ApplyOptions{FieldManager: "clients"}
	made, err := deployments.Apply(t.Context(), newDeployment(namespace), options)
	if err != nil {
		t.Fatal(err)
	}
	made.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, ObservedGeneration: made.Generation}
	made.Spec.Paused = true
	made, err = deployments.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	if err != nil || made.Status.ReadyReplicas != 1 || made.Spec.Paused || made.Generation != 1 {
		t.Errorf("UpdateStatus must change only the status: got %v, %v", made, err)
	}
	scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Fatalf("the scale must have the replicas and the selector: got %v, %v", scale, err)
	}
	scale.Spec.Replicas = 3
	if _, err := deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = deployments.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{
		ObjectMeta: scale.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: 4},
	}, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("updating a scale of a former version: got %v, want a conflict", err)
	}
	made, err = deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *made.Spec.Replicas != 3 || made.Generation != 2 {
		t.Errorf("the scaled Deployment must have 3 replicas: got %v, %v", made, err)
	}
}

func checkChunks(t *testing.T, _ cluster, client kubernetes.Interface, namespace string) {
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := range 5 {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("chunk-", i), Labels: map[string]string{"chunk": "yes"}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	options := metav1.ListOptions{Limit: 2, LabelSelector: "chunk"}
	var sizes []int
	for {
		list, err := maps.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(list.Items))
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if fmt.Sprint(sizes) != "[2 2 1]" {
		t.Errorf("the chunks have the sizes %v, want 2, 2 and 1", sizes)
	}
}

// checkBookmarks lists with a watch: the bookmark marks the end of the list.
func checkBookmarks(t *testing.T, _ cluster, client kubernetes.Interface, namespace string) {
	maps := client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := true
	events, err := maps.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &all, AllowWatchBookmarks: true, FieldSelector: "metadata.name=a",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var seen []watch.EventType
	for event := range events.ResultChan() {
		seen = append(seen, event.Type)
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("the watch must show a ConfigMap, got %s %v", event.Type, event.Object)
		}
		if event.Type == watch.Added && object.UID != made.UID {
			t.Errorf("the watch shows %v, want %v", object, made)
		}
		if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
	}
	if fmt.Sprint(seen) != "[ADDED BOOKMARK]" {
		t.Errorf("the watch begins with %v, want ADDED and BOOKMARK", seen)
	}
}

// outage is a transport that can cut its watches. New watches wait for the end of the outage.
type outage struct {
	next    http.RoundTripper
	mu      sync.Mutex
	bodies  []io.Closer
	ended   chan struct{} // nil without an outage
	queries []string
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return o.next.RoundTrip(r)
	}
	o.mu.Lock()
	ended := o.ended
	o.queries = append(o.queries, r.URL.RawQuery)
	o.mu.Unlock()
	if ended != nil {
		select {
		case <-ended:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	response, err := o.next.RoundTrip(r)
	if err == nil {
		o.mu.Lock()
		o.bodies = append(o.bodies, response.Body)
		o.mu.Unlock()
	}
	return response, err
}

// begin cuts all watches, and returns the function that ends the outage.
func (o *outage) begin() (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ended := make(chan struct{})
	o.ended = ended
	for _, one := range o.bodies {
		_ = one.Close()
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ended = nil
		close(ended)
	}
}

// checkExpired watches from a version that is no longer in the history.
func checkExpired(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	events, err := client.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		defer events.Stop()
		event := <-events.ResultChan()
		if err = apierrors.FromObject(event.Object); event.Type != watch.Error {
			err = fmt.Errorf("the watch begins with the event %s", event.Type)
		}
	}
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from the version 1: got %v, want 410", err)
	}
}

// checkInformer lists with a watch, and shows that an informer survives an outage. On the development cluster, the
// changes during the outage are no longer in the history, so the informer gets 410 and lists again.
func checkInformer(t *testing.T, c cluster, client kubernetes.Interface, namespace string) {
	maps := client.CoreV1().ConfigMaps(namespace)
	through := &outage{}
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		through.next = next
		return through
	})
	factory := informers.NewSharedInformerFactoryWithOptions(protobufClient(t, config), 0,
		informers.WithNamespace(namespace))
	seen := make(chan string, 100)
	report := func(what string) func(any) {
		return func(object any) {
			// The informer has missed the deletion of an object during the outage.
			if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			if one, ok := object.(*corev1.ConfigMap); ok && strings.HasPrefix(one.Name, "seen-") {
				seen <- what + " " + one.Name
			}
		}
	}
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: report("added"), DeleteFunc: report("deleted"),
		UpdateFunc: func(_, object any) { report("updated")(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	create := func(name string) {
		t.Helper()
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	next := func() string {
		t.Helper()
		select {
		case got := <-seen:
			return got
		case <-time.After(waitTimeout):
			t.Fatal("the informer must report a change in time")
			return ""
		}
	}
	// An informer that lists again also reports objects without a change as updated.
	await := func(want ...string) {
		t.Helper()
		for missing := slices.Clone(want); len(missing) > 0; {
			got := next()
			missing = slices.DeleteFunc(missing, func(one string) bool { return one == got })
		}
	}
	create("seen-1")
	factory.Start(ctx.Done())
	await("added seen-1")
	create("seen-2")
	await("added seen-2")
	end := through.begin()
	create("seen-3")
	if err := maps.Delete(ctx, "seen-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if c.development != nil {
		c.development.Memory().Compact()
		checkExpired(t, client, namespace)
	}
	end()
	await("added seen-3", "deleted seen-1")
	create("seen-4")
	await("added seen-4")
	if !strings.Contains(strings.Join(through.queries, " "), "sendInitialEvents=true") {
		t.Errorf("the informer must list with a watch, got the queries %v", through.queries)
	}
}

package serving_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// program is a manager that counts requests for config maps and can refuse them.
type program struct {
	client.Client
	t                  *testing.T
	directClient       client.Client
	reads              atomic.Int64
	watches            atomic.Int64
	isRefusing         atomic.Bool // whether lists and watches are refused
	forbiddenNamespace string      // a namespace whose lists and watches are always refused
}

// runProgram runs play with a program that reads the given kinds from a cache of the given namespaces.
func runProgram(t *testing.T, cached []client.Object, namespaces []string, play func(t *testing.T, p *program)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, p := memapi.New(), &program{t: t}
		var err error
		if p.directClient, err = client.New(memapi.Config(server), client.Options{}); err != nil {
			t.Fatal(err)
		}
		connection := server.Connect()
		connection.Before = p.count
		reads, err := serving.NewCachedReads(scheme.Scheme, cached)
		if err != nil {
			t.Fatal(err)
		}
		options := ctrl.Options{
			Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		}
		for _, name := range namespaces {
			if options.Cache.DefaultNamespaces == nil {
				options.Cache.DefaultNamespaces = map[string]cache.Config{}
			}
			options.Cache.DefaultNamespaces[name] = cache.Config{}
		}
		reads.ConfigureManager(&options)
		m, err := ctrl.NewManager(memapi.Config(connection), options)
		if err != nil {
			t.Fatal(err)
		}
		p.Client = m.GetClient()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Start(ctx) }()
		time.Sleep(time.Second)
		play(t, p)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (p *program) count(_ context.Context, r memapi.Request) error {
	if r.Resource.Plural != "configmaps" {
		return nil
	}
	switch r.Verb {
	case "get", "list":
		p.reads.Add(1)
	case "watch":
		p.watches.Add(1)
	}
	if (p.isRefusing.Load() || p.forbiddenNamespace != "" && r.Namespace == p.forbiddenNamespace) && r.Verb != "get" {
		return memapi.NewRefusal(http.StatusForbidden)
	}
	return nil
}

func (p *program) create(namespace, name string) {
	p.t.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := p.directClient.Create(context.Background(), made); err != nil {
		p.t.Fatal(err)
	}
}

// get reads a config map with a timeout of an hour.
func (p *program) get(namespace, name string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	began := time.Now()
	err = p.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
	return time.Since(began), err
}

func TestLiveReads(t *testing.T) {
	runProgram(t, nil, []string{"mine"}, func(t *testing.T, p *program) {
		for _, namespace := range []string{"mine", "other"} {
			p.create(namespace, "a")
			if took, err := p.get(namespace, "a"); err != nil || took != 0 {
				t.Errorf("%s: a new object must be readable at once, in every namespace: %v after %s",
					namespace, err, took)
			}
		}
		var typed corev1.ConfigMapList
		untyped := &unstructured.UnstructuredList{}
		untyped.SetAPIVersion("v1")
		untyped.SetKind("ConfigMapList")
		for _, list := range []client.ObjectList{&typed, untyped} {
			if err := p.List(t.Context(), list); err != nil {
				t.Error(err)
			}
		}
		if len(typed.Items) != 2 || len(untyped.Items) != 2 || p.reads.Load() != 4 || p.watches.Load() != 0 {
			t.Errorf(
				"%d and %d objects in lists; %d requests and %d watches: want one request per read and no watch",
				len(typed.Items), len(untyped.Items), p.reads.Load(), p.watches.Load(),
			)
		}
		p.isRefusing.Store(true)
		if err := p.List(t.Context(), &typed); !apierrors.IsForbidden(err) {
			t.Errorf("a forbidden list must be an error: %v", err)
		}
	})
}

func TestCachedReads(t *testing.T) {
	runProgram(t, []client.Object{&corev1.ConfigMap{}}, []string{"mine"}, func(t *testing.T, p *program) {
		p.create("mine", "a")
		p.create("other", "a")
		for range 3 {
			if _, err := p.get("mine", "a"); err != nil {
				t.Error(err)
			}
			var list corev1.ConfigMapList
			if err := p.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
				t.Errorf("want one object in the list, got %d, error %v", len(list.Items), err)
			}
		}
		if p.reads.Load() != 0 || p.watches.Load() != 1 {
			t.Errorf("%d requests and %d watches: want all reads from one watch", p.reads.Load(), p.watches.Load())
		}
		if _, err := p.get("mine", "b"); !apierrors.IsNotFound(err) {
			t.Errorf("a missing object must be a NotFound error: %v", err)
		}
		if took, err := p.get("other", "a"); err == nil || took != 0 || !strings.Contains(err.Error(), "other") {
			t.Errorf("a namespace outside of the cache must be an error: %v after %s", err, took)
		}
	})
}

// TestCachesThatCannotBeFilled shows that a read of a kind that cannot be listed fails within a second instead of
// blocking a handler.
func TestCachesThatCannotBeFilled(t *testing.T) {
	runProgram(t, []client.Object{&corev1.ConfigMap{}}, nil, func(t *testing.T, p *program) {
		p.create("mine", "a")
		p.isRefusing.Store(true)
		for range 2 {
			took, err := p.get("mine", "a")
			if took > time.Second || err == nil || !apierrors.IsForbidden(err) || !strings.Contains(
				err.Error(), "reading /v1, Kind=ConfigMap from the cache, as Settings.CachedReads says",
			) {
				t.Errorf("after %s: %v", took, err)
			}
		}
		p.isRefusing.Store(false)
		time.Sleep(time.Minute)
		if took, err := p.get("mine", "a"); err != nil || took != 0 {
			t.Errorf("a read must succeed as soon as the kind can be listed: %v after %s", err, took)
		}
		p.isRefusing.Store(true)
		time.Sleep(time.Hour)
		if took, err := p.get("mine", "a"); err != nil || took != 0 {
			t.Errorf("a filled cache must stay readable: %v after %s", err, took)
		}
	})
}

// TestCachesOfSomeNamespaces shows that each namespace and each form of an object has its own cache, whose failure
// does not affect the others.
func TestCachesOfSomeNamespaces(t *testing.T) {
	runProgram(t, []client.Object{&corev1.ConfigMap{}}, []string{"mine", "other"}, func(t *testing.T, p *program) {
		p.forbiddenNamespace = "other"
		p.create("mine", "a")
		p.create("other", "a")
		for range 2 {
			if took, err := p.get("mine", "a"); err != nil || took > time.Second {
				t.Errorf("a namespace that can be listed must be readable: %v after %s", err, took)
			}
			if took, err := p.get("other", "a"); !apierrors.IsForbidden(err) || took > time.Second {
				t.Errorf("a namespace that cannot be listed must be an error: %v after %s", err, took)
			}
		}
		untyped := &unstructured.Unstructured{}
		untyped.SetAPIVersion("v1")
		untyped.SetKind("ConfigMap")
		if err := p.Get(t.Context(), client.ObjectKey{Namespace: "mine", Name: "a"}, untyped); err != nil {
			t.Errorf("a read of another form must succeed after a failure: %v", err)
		}
	})
}

func TestUnknownKinds(t *testing.T) {
	if _, err := serving.NewCachedReads(scheme.Scheme, []client.Object{&unstructured.Unstructured{}}); err == nil {
		t.Error("an object without a kind must be an error")
	}
}

package facadetest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errNoClient = errors.New("facadetest: the handler uses its client, and the test has given none: pass " +
	"facadetest.Client(fake.NewClientBuilder().Build()), or another client, to the constructor")

// noClient takes the place of a client that the test has not passed, and fails all requests. It also records the
// attempt, because handlers may discard the error.
type noClient struct{ asked atomic.Bool }

// client returns a client with the scheme. The interceptor rejects requests, and the mapper and the transport reject
// all remaining uses, such as discovery.
func (n *noClient) client(scheme *runtime.Scheme) client.Client {
	unmapped := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) { return nil, n.refuse() })
	refusing, err := client.NewWithWatch(
		// The host is never contacted, because the transport rejects each request.
		&rest.Config{Host: "http://none", Transport: n}, client.Options{Scheme: scheme, Mapper: unmapped},
	)
	if err != nil {
		mistake("making a client: %v", err)
	}
	return interceptor.NewClient(refusing, n.functions())
}

// RoundTrip rejects requests that the interceptor does not cover.
func (n *noClient) RoundTrip(*http.Request) (*http.Response, error) { return nil, n.refuse() }

// refuse records the use of the client and returns the error.
func (n *noClient) refuse() error {
	n.asked.Store(true)
	return errNoClient
}

// err returns the error for the test if the client was used, else nil.
func (n *noClient) err() error {
	if !n.asked.Load() {
		return nil
	}
	return errNoClient
}

// functions returns interceptors that fail all requests. They run before the client looks up the kind of the object:
// for a kind that is not in the scheme, the test would otherwise get an error about the scheme.
func (n *noClient) functions() interceptor.Funcs {
	type (
		ctx  = context.Context
		with = client.WithWatch
	)
	return interceptor.Funcs{
		Get:         func(ctx, with, client.ObjectKey, client.Object, ...client.GetOption) error { return n.refuse() },
		List:        func(ctx, with, client.ObjectList, ...client.ListOption) error { return n.refuse() },
		Create:      func(ctx, with, client.Object, ...client.CreateOption) error { return n.refuse() },
		Delete:      func(ctx, with, client.Object, ...client.DeleteOption) error { return n.refuse() },
		DeleteAllOf: func(ctx, with, client.Object, ...client.DeleteAllOfOption) error { return n.refuse() },
		Update:      func(ctx, with, client.Object, ...client.UpdateOption) error { return n.refuse() },
		Patch:       func(ctx, with, client.Object, client.Patch, ...client.PatchOption) error { return n.refuse() },
		Apply:       func(ctx, with, runtime.ApplyConfiguration, ...client.ApplyOption) error { return n.refuse() },
		SubResourceGet: func(
			ctx, client.Client, string, client.Object, client.Object, ...client.SubResourceGetOption,
		) error {
			return n.refuse()
		},
		SubResourceCreate: func(
			ctx, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption,
		) error {
			return n.refuse()
		},
		SubResourceUpdate: func(
			ctx, client.Client, string, client.Object, ...client.SubResourceUpdateOption,
		) error {
			return n.refuse()
		},
		SubResourcePatch: func(
			ctx, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption,
		) error {
			return n.refuse()
		},
		SubResourceApply: func(
			ctx, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption,
		) error {
			return n.refuse()
		},
	}
}

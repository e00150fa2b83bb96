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

// missingClient takes the place of a client that the test has not passed, and fails all requests. It also records the
// attempt, because handlers may discard the error.
type missingClient struct{ isUsed atomic.Bool }

// newClient returns a client with the scheme. The interceptor rejects requests, and the mapper and the transport reject
// all remaining uses, such as discovery.
func (n *missingClient) newClient(scheme *runtime.Scheme) client.Client {
	unmapped := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) { return nil, n.refuseRequest() })
	refusing, err := client.NewWithWatch(
		// The host is never contacted, because the transport rejects each request.
		&rest.Config{Host: "http://none", Transport: n}, client.Options{Scheme: scheme, Mapper: unmapped},
	)
	if err != nil {
		panicMisuse("making a client: %v", err)
	}
	return interceptor.NewClient(refusing, n.interceptorFuncs())
}

// RoundTrip rejects requests that the interceptor does not cover.
func (n *missingClient) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, n.refuseRequest()
}

// refuseRequest records the use of the client and returns the error.
func (n *missingClient) refuseRequest() error {
	n.isUsed.Store(true)
	return errNoClient
}

// usageError returns the error for the test if the client was used, else nil.
func (n *missingClient) usageError() error {
	if !n.isUsed.Load() {
		return nil
	}
	return errNoClient
}

// interceptorFuncs returns interceptors that fail all requests. They run before the client looks up the kind of the
// object: for a kind that is not in the scheme, the test would otherwise get an error about the scheme.
func (n *missingClient) interceptorFuncs() interceptor.Funcs {
	type (
		ctx  = context.Context
		with = client.WithWatch
	)
	return interceptor.Funcs{
		Get: func(ctx, with, client.ObjectKey, client.Object, ...client.GetOption) error {
			return n.refuseRequest()
		},
		List:        func(ctx, with, client.ObjectList, ...client.ListOption) error { return n.refuseRequest() },
		Create:      func(ctx, with, client.Object, ...client.CreateOption) error { return n.refuseRequest() },
		Delete:      func(ctx, with, client.Object, ...client.DeleteOption) error { return n.refuseRequest() },
		DeleteAllOf: func(ctx, with, client.Object, ...client.DeleteAllOfOption) error { return n.refuseRequest() },
		Update:      func(ctx, with, client.Object, ...client.UpdateOption) error { return n.refuseRequest() },
		Patch: func(ctx, with, client.Object, client.Patch, ...client.PatchOption) error {
			return n.refuseRequest()
		},
		Apply: func(ctx, with, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return n.refuseRequest()
		},
		// The transport refuses the requests for subresources. Their kinds may be missing in the scheme, so the use is
		// recorded before.
		SubResource: func(inner client.WithWatch, name string) client.SubResourceClient {
			n.isUsed.Store(true)
			return inner.SubResource(name)
		},
	}
}

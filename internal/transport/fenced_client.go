package transport

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WrapClient wraps a client. Its writes are refused when the fence is down or without permission; its reads never are,
// because they do no harm.
func (f *Fence) WrapClient(next client.Client) client.Client {
	return fencedClient{Client: next, fence: f}
}

// sendIfStanding sends the request if the fence permits a write to the namespace.
func (f *Fence) sendIfStanding(ctx context.Context, namespace string, request func() error) error {
	if err := f.refusalFor(ctx, true, namespace); err != nil {
		return err
	}
	return request()
}

// configuredNamespace returns the namespace of an object to apply. It is empty if its type has no method for that:
// generated configurations return a pointer, unstructured ones a string.
func configuredNamespace(object runtime.ApplyConfiguration) string {
	switch named := object.(type) {
	case interface{ GetNamespace() string }:
		return named.GetNamespace()
	case interface{ GetNamespace() *string }:
		if namespace := named.GetNamespace(); namespace != nil {
			return *namespace
		}
	}
	return ""
}

// fencedClient wraps a client. It embeds the interface, so that it compiles with later versions that have more methods.
type fencedClient struct {
	client.Client

	fence *Fence
}

// Create creates the object if the fence stands.
func (c fencedClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(),
		func() error { return c.Client.Create(ctx, object, opts...) })
}

// Delete deletes the object if the fence stands.
func (c fencedClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(),
		func() error { return c.Client.Delete(ctx, object, opts...) })
}

// Update replaces the object if the fence stands.
func (c fencedClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(),
		func() error { return c.Client.Update(ctx, object, opts...) })
}

// Patch patches the object if the fence stands.
func (c fencedClient) Patch(
	ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(),
		func() error { return c.Client.Patch(ctx, object, patch, opts...) })
}

// Apply applies the configuration if the fence stands.
func (c fencedClient) Apply(
	ctx context.Context, object runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	return c.fence.sendIfStanding(ctx, configuredNamespace(object),
		func() error { return c.Client.Apply(ctx, object, opts...) })
}

// DeleteAllOf deletes the objects of the kind if the fence stands.
func (c fencedClient) DeleteAllOf(
	ctx context.Context, object client.Object, opts ...client.DeleteAllOfOption,
) error {
	options := client.DeleteAllOfOptions{}
	options.ApplyOptions(opts)
	return c.fence.sendIfStanding(ctx, options.Namespace,
		func() error { return c.Client.DeleteAllOf(ctx, object, opts...) })
}

// Status returns a writer that writes the status if the fence stands.
func (c fencedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client that writes the subresource if the fence stands.
func (c fencedClient) SubResource(name string) client.SubResourceClient {
	return fencedSubResource{SubResourceClient: c.Client.SubResource(name), fence: c.fence}
}

// fencedSubResource wraps the client of a subresource in the same way.
type fencedSubResource struct {
	client.SubResourceClient

	fence *Fence
}

// Create creates the subresource if the fence stands.
func (c fencedSubResource) Create(
	ctx context.Context, object, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(), func() error {
		return c.SubResourceClient.Create(ctx, object, sub, opts...)
	})
}

// Update replaces the subresource if the fence stands.
func (c fencedSubResource) Update(
	ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(), func() error {
		return c.SubResourceClient.Update(ctx, object, opts...)
	})
}

// Patch patches the subresource if the fence stands.
func (c fencedSubResource) Patch(
	ctx context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return c.fence.sendIfStanding(ctx, object.GetNamespace(), func() error {
		return c.SubResourceClient.Patch(ctx, object, patch, opts...)
	})
}

// Apply applies the configuration to the subresource if the fence stands.
func (c fencedSubResource) Apply(
	ctx context.Context, object runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return c.fence.sendIfStanding(ctx, configuredNamespace(object),
		func() error { return c.SubResourceClient.Apply(ctx, object, opts...) })
}

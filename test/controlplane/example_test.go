package controlplane_test

import (
	"context"
	"fmt"
	"os"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// A cluster for a test's main function.
func Example() {
	ctx := context.Background()
	found, err := assets.Resolve(ctx, assets.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	c, err := controlplane.Start(ctx, found, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer func() {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	fmt.Println(found.Path("kubectl"), "--kubeconfig", c.Kubeconfig(), "get", "namespaces")
}

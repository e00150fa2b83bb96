package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := devcluster.Start(ctx, devcluster.Options{Kubeconfig: "/tmp/w/dc.kubeconfig"})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Kubeconfig())
	fmt.Println(c.Wait())
}

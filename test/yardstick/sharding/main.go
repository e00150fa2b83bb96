// Command sharding measures an operator whose replicas share the objects: what each replica receives and keeps in
// memory beside one process without sharding, how many objects they handle, and their requests to Leases.
//
//	make figures NAME=sharding
//
// It runs on kube-apiserver, first with the feature gate ShardedListAndWatch, then without. The replicas are processes
// of this program with a role in an environment variable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runReplica(role))
	}
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:])
	if err == nil {
		err = o.run(ctx)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "sharding:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	assets, root, gates     string
	objects, size           int
	edits, handled          int
	shards, replicas, limit int
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("sharding", flag.ContinueOnError)
	flags.IntVar(&o.objects, "n", 20_000, "how many objects")
	flags.IntVar(&o.size, "size", 1000, "the `bytes` of an object, about, without its metadata")
	flags.IntVar(&o.edits, "edits", 2000, "how many objects are edited while bytes are counted")
	flags.IntVar(&o.handled, "handled", 600, "how many edits are handled for the throughput; 0 skips it")
	flags.IntVar(&o.shards, "shards", 16, "how many ranges")
	flags.IntVar(&o.replicas, "replicas", 4, "how many replicas share the objects")
	flags.IntVar(&o.limit, "workers", 2, "how many objects a replica handles at once for the throughput")
	flags.StringVar(&o.gates, "gates", "true,false", "the `values` of the feature gate, with commas in between")
	flags.StringVar(&o.root, "root", ".", "the `folder` of this repository")
	flags.StringVar(&o.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"),
		"the `folder` with etcd, kube-apiserver and kubectl: make assets prints it")
	if err = flags.Parse(args); err == nil && o.assets == "" {
		err = errors.New("there is no control plane: use make figures NAME=sharding, or the folder of make assets")
	}
	return o, err
}

// say prints a line of the results.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

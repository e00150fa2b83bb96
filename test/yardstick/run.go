package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/figures"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/scenarios"
)

// pairs lists the comparisons that are printed if both contenders have run.
var pairs = []figures.Pair{
	{Title: "dynamic to by hand", Numerator: "ours-dynamic", Denominator: "byhand-dynamic"},
	{Title: "typed to by hand", Numerator: "ours-typed", Denominator: "byhand-typed"},
	{Title: "minimal to empty", Numerator: minimalName, Denominator: emptyName},
	{Title: "dynamic to Kopf", Numerator: "ours-dynamic", Denominator: "kopf"},
	{Title: "typed to Kopf", Numerator: "ours-typed", Denominator: "kopf"},
}

// run plays the scenarios one after another and prints the figures of each at its end.
func (o options) run(ctx context.Context, results, progress io.Writer) (err error) {
	log.SetLogger(logr.Discard())
	folder, err := os.MkdirTemp("", "yardstick-*")
	if err != nil {
		return fmt.Errorf("making a folder for programs and logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	bench := &scenarios.Bench{
		Folder: cmp.Or(o.logs, folder), Progress: progress, Size: o.size, Rounds: o.rounds,
		Window: o.window, IdleTime: o.idleTime, Rate: o.rate,
	}
	if bench.Contenders, err = o.prepare(ctx, folder, progress); err != nil {
		return err
	}
	say(progress, "starting etcd and kube-apiserver")
	watching, end := context.WithCancel(ctx)
	defer end()
	bench.Cluster, err = cluster.Start(watching, cluster.Options{
		Assets: o.assets, CRD: filepath.Join(o.root, "config", "crd", "kopfexamples.yaml"),
		Folder: folder, Users: users(bench.Contenders), Progress: progress,
	})
	if err != nil {
		return err
	}
	defer func() {
		end() // otherwise the API server waits for the watches
		err = errors.Join(err, bench.Cluster.Stop())
	}()
	say(results, "load of the machine at the beginning: %s", load())
	for _, s := range o.scenarios {
		if err := o.play(ctx, s, bench, results); err != nil {
			return err
		}
	}
	say(results, "load of the machine at the end, with the servers and the contenders: %s", load())
	return nil
}

// play runs a scenario and prints its figures, even after a failure, because they can have taken hours.
func (o options) play(ctx context.Context, s scenarios.Scenario, bench *scenarios.Bench, results io.Writer) error {
	bench.Book, bench.Objects = &figures.Book{}, cmp.Or(o.objects, s.Objects)
	failed := s.Play(ctx, bench)
	say(results, "\n== %s: %s\nN=%d SIZE=%d ROUNDS=%d; ratios of ours to others: median (least–greatest)",
		s.Name, s.Description, bench.Objects, o.size, o.rounds)
	if failed != nil {
		say(results, "not all of it was measured: %v", failed)
	}
	var ran []string
	for _, c := range s.Fitting(bench.Contenders) {
		ran = append(ran, c.Name)
	}
	return errors.Join(failed, bench.Book.Print(results, ran, pairs))
}

func users(list []scenarios.Contender) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.User())
	}
	return slices.Clip(names)
}

// load returns the load averages of one, five and fifteen minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// Command assets prints the folder that holds etcd, kube-apiserver and kubectl, and gets missing programs first.
//
// The folder is the one that KUBEBUILDER_ASSETS names, or else a cache. Missing programs are downloaded by
// setup-envtest, or built from the Go module proxy where there is no access to the downloads. The command runs in the
// root of the repository, on the standard library alone, so that the first call costs a second of compilation. It does
// not start servers: that is the command in the folder above.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const advice = "set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl, or KOPF_RUNTIME_CACHE to a " +
	"folder that can be written to"

// source writes as many of the wanted programs as possible into a folder.
type source func(ctx context.Context, want []string, folder string) error

func main() {
	manager := flag.Bool("controller-manager", false,
		"also kube-controller-manager, which is not part of the download: its build takes some minutes")
	flag.Parse()
	want := []string{"etcd", "kube-apiserver", "kubectl"}
	if *manager {
		want = append(want, "kube-controller-manager")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	folder, err := resolve(ctx, want, download, build)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

// resolve returns a folder that holds the wanted programs. The sources fill the cache, the first that can being used.
func resolve(ctx context.Context, want []string, sources ...source) (string, error) {
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		// Another folder instead would hide the mistake.
		if lacking := missing(folder, want); len(lacking) > 0 {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS is %s, which has no executable %s: name a folder that has, or "+
				"unset the variable to have the programs downloaded or built", folder, strings.Join(lacking, ", "))
		}
		return filepath.Abs(folder)
	}
	folder, err := cacheFolder()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w; %s", err, advice)
	}
	var failures []error
	for _, fetch := range sources {
		if lacking := missing(folder, want); len(lacking) > 0 {
			failures = append(failures, fill(ctx, folder, lacking, fetch))
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	if lacking := missing(folder, want); len(lacking) > 0 {
		return "", fmt.Errorf("getting %s: %w\n%s", strings.Join(lacking, ", "), errors.Join(failures...), advice)
	}
	return folder, nil
}

// cacheFolder returns a folder for the versions and the platform, so that one cache serves several checkouts.
func cacheFolder() (string, error) {
	kubernetes, err := pinnedVersion(kubernetesModule)
	if err != nil {
		return "", err
	}
	etcd, err := pinnedVersion(etcdModule)
	if err != nil {
		return "", err
	}
	root := os.Getenv("KOPF_RUNTIME_CACHE")
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		root = filepath.Join(user, "kopf-runtime")
	}
	name := strings.Join([]string{kubernetes, etcd, runtime.GOOS, runtime.GOARCH}, "-")
	return filepath.Abs(filepath.Join(root, "controlplane", name))
}

// missing lists the programs that a folder does not have.
func missing(folder string, want []string) (lacking []string) {
	for _, name := range want {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			lacking = append(lacking, name)
		}
	}
	return lacking
}

// fill lets a source write into a folder of its own, and moves finished programs into the cache: they are there
// completely or not at all.
func fill(ctx context.Context, folder string, want []string, fetch source) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the cache may be shared
		return err
	}
	incoming, err := os.MkdirTemp(folder, ".incoming-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(incoming) }()
	failures := []error{fetch(ctx, want, incoming)}
	for _, name := range want {
		if len(missing(incoming, []string{name})) == 0 {
			failures = append(failures, os.Rename(filepath.Join(incoming, name), filepath.Join(folder, name)))
		}
	}
	return errors.Join(failures...)
}

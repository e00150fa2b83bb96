package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"

	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	releaseIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

	// probeTimeout is all that a machine without access to the downloads loses.
	probeTimeout = 5 * time.Second
	// downloadTimeout covers the build of setup-envtest and about 100 MB. With a slower connection, a build is better.
	downloadTimeout = 3 * time.Minute
)

// pins are the go.mod files of the builds, by their modules.
var pins = map[string]string{
	kubernetesModule: "test/controlplane/assets/modules/kubernetes.mod",
	etcdModule:       "test/controlplane/assets/modules/etcd.mod",
}

// pinnedVersion returns the version of a module that is built, without the "v".
func pinnedVersion(module string) (string, error) {
	data, err := os.ReadFile(pins[module])
	if err != nil {
		return "", fmt.Errorf("reading the version to get, in the root of the repository: %w", err)
	}
	found := regexp.MustCompile(`(?m)^require ` + module + ` v(\S+) `).FindSubmatch(data)
	if found == nil {
		return "", fmt.Errorf("%s does not require %s", pins[module], module)
	}
	return string(found[1]), nil
}

// download asks setup-envtest, which compares the programs with the sums of its index. It has the newest patch version
// that was released for envtest, and no kube-controller-manager.
func download(ctx context.Context, want []string, folder string) error {
	if slices.Equal(want, []string{"kube-controller-manager"}) {
		return nil
	}
	version, err := pinnedVersion(kubernetesModule)
	if err != nil {
		return err
	}
	// The build of setup-envtest would be in vain where its index cannot be reached.
	response, err := (&http.Client{Timeout: probeTimeout}).Head(releaseIndex)
	if err != nil {
		return fmt.Errorf("no download: %w", err)
	}
	response.Body.Close()
	version = version[:strings.LastIndexByte(version, '.')] + ".x"
	fmt.Fprintf(os.Stderr, "assets: downloading %s v%s\n", strings.Join(want, ", "), version)
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	from, err := runGo(ctx, "run", setupEnvtest, "use", version, "--print", "path", "--bin-dir", folder)
	if err != nil {
		return fmt.Errorf("no download: %w", err)
	}
	var failures []error
	for _, name := range want {
		if len(missing(from, []string{name})) == 0 {
			failures = append(failures, os.Rename(filepath.Join(from, name), filepath.Join(folder, name)))
		}
	}
	return errors.Join(failures...)
}

// build compiles the programs from the Go module proxy, about seven minutes on two cores, one after the other: a single
// build uses every core.
func build(ctx context.Context, want []string, folder string) error {
	var failures []error
	for _, name := range want {
		if ctx.Err() != nil {
			break
		}
		module, program := kubernetesModule, kubernetesModule+"/cmd/"+name
		if name == "etcd" {
			module, program = etcdModule, etcdModule
		}
		version, err := pinnedVersion(module)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "assets: building %s v%s, some minutes the first time\n", name, version)
		_, err = runGo(ctx, "build", "-modfile", pins[module], "-mod=readonly", "-trimpath",
			"-ldflags", versionFlags(version), "-o", filepath.Join(folder, name), program)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// versionFlags sets what the build of Kubernetes sets: without its version, kube-apiserver refuses to start, and
// clients misjudge it.
func versionFlags(version string) string {
	parts := strings.Split(version, ".")
	const component = " -X k8s.io/component-base/version.git"
	return "-s -w" + component + "Version=v" + version + component + "Major=" + parts[0] +
		component + "Minor=" + parts[1] + " -X k8s.io/client-go/pkg/version.gitVersion=v" + version
}

// runGo runs the Go command without the settings that callers have for their own builds: these would build another
// program, or one for another machine. It returns the standard output.
func runGo(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return strings.TrimSpace(string(out)), nil
}

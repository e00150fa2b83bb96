package assets

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// modules holds a go.mod and go.sum per build, so that the same sources are built everywhere and checked on the way.
// The files have other names than in a module, because an embedded folder must not be a module.
//
//go:generate go run modules/pin.go
//go:embed modules/*.mod modules/*.sum
var modules embed.FS

// recipe says how one program is built.
type recipe struct {
	module  string // the files in modules/
	pkg     string
	ldflags string
	note    string // what to expect, on two cores
}

const component = "k8s.io/component-base/version"

// kubernetesFlags sets what Kubernetes' own build sets: the server refuses to start, and clients misjudge it, when it
// does not know its version.
var kubernetesFlags = strings.Join([]string{
	"-s -w",
	"-X " + component + ".gitVersion=v" + KubernetesVersion,
	"-X " + component + ".gitMajor=" + strings.Split(KubernetesVersion, ".")[0],
	"-X " + component + ".gitMinor=" + strings.Split(KubernetesVersion, ".")[1],
	"-X k8s.io/client-go/pkg/version.gitVersion=v" + KubernetesVersion,
}, " ")

var recipes = map[string]recipe{
	"etcd": {"etcd", "go.etcd.io/etcd/server/v3", "-s -w", "about 1 minute the first time"},
	"kube-apiserver": {"kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags,
		"about 5 minutes the first time"},
	"kubectl": {"kubernetes", "k8s.io/kubernetes/cmd/kubectl", kubernetesFlags, "about 1 minute the first time"},
	ControllerManager: {"kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags,
		"about 2 minutes the first time"},
}

// Build is the Source that compiles the programs from the Go module proxy. It only needs the Go command.
type Build struct{}

// Fetch implements Source. Programs are built one after the other: a single build uses every core already.
func (b *Build) Fetch(ctx context.Context, want []Binary, dir string, report *progress.Reporter) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("building: %w; install Go from https://go.dev/dl", err)
	}
	if len(want) > 1 {
		report.Say("building %s from source, once", names(want))
	}
	var failures []error
	for _, w := range want {
		if err := build(ctx, w, dir, report); err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func build(ctx context.Context, b Binary, dir string, report *progress.Reporter) error {
	r := recipes[b.Name]
	module, err := unpack(r.module, dir)
	if err != nil {
		return err
	}
	began := time.Now()
	done := report.Waiting("building "+b.Name+" v"+b.Version, r.note)
	defer done()
	// These flags win over the caller's GOFLAGS, the environment below over the caller's go.work and platform.
	cmd := exec.Command("go", "build", "-mod=readonly", "-trimpath", "-race=false", "-buildvcs=false",
		"-ldflags", r.ldflags, "-o", filepath.Join(dir, b.Name), r.pkg)
	cmd.Dir = module
	cmd.Env = goEnvironment(module)
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := process.Run(ctx, cmd); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w\n%s", err, lastLines(output.buffer, 15))
		}
		return fmt.Errorf("building %s v%s: %w", b.Name, b.Version, err)
	}
	done()
	report.Say("built %s v%s in %s", b.Name, b.Version, time.Since(began).Round(time.Second))
	return nil
}

// unpack writes a module's two files into a new folder below dir, which goes with it.
func unpack(module, dir string) (string, error) {
	dir, err := os.MkdirTemp(dir, "module-*")
	if err != nil {
		return "", fmt.Errorf("creating a folder to build in: %w", err)
	}
	for name, from := range map[string]string{"go.mod": module + ".mod", "go.sum": module + ".sum"} {
		data, err := modules.ReadFile("modules/" + from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			return "", fmt.Errorf("unpacking the build of %s: %w", module, err)
		}
	}
	return dir, nil
}

// tail keeps the end of a program's output. Downloads alone can be thousands of lines.
type tail struct{ buffer []byte }

func (t *tail) Write(p []byte) (int, error) {
	const limit = 16 << 10
	t.buffer = append(t.buffer, p...)
	if excess := len(t.buffer) - limit; excess > 0 {
		t.buffer = append(t.buffer[:0], t.buffer[excess:]...)
	}
	return len(p), nil
}

package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

const (
	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	releaseIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

	// probeTimeout is all that a machine without access loses.
	probeTimeout = 5 * time.Second
	// downloadTimeout covers the tool's own build and about 100 MB. A slower line had better build.
	downloadTimeout = 3 * time.Minute
)

// Download is the Source that asks setup-envtest, with the Go command's help. Its failure is usual, on a machine behind
// a firewall for example, and costs seconds.
type Download struct {
	// Index is the URL of the list of releases; the default is setup-envtest's.
	Index string
}

// Fetch implements Source. It gives the standard programs only, of the newest patch version that was released for
// envtest.
func (d *Download) Fetch(ctx context.Context, want []Binary, dir string, report *progress.Reporter) error {
	want = slices.DeleteFunc(slices.Clone(want), func(b Binary) bool { return !slices.Contains(standardBinaries, b) })
	if len(want) == 0 {
		return nil
	}
	if err := d.fetch(ctx, want, dir, report); err != nil {
		return fmt.Errorf("no download: %w", err)
	}
	return nil
}

func (d *Download) fetch(ctx context.Context, want []Binary, dir string, report *progress.Reporter) error {
	index := d.Index
	if index == "" {
		index = releaseIndex
	}
	if err := probe(ctx, index, report); err != nil {
		return err
	}
	store, err := os.MkdirTemp(dir, "store-*")
	if err != nil {
		return fmt.Errorf("creating a folder for the download: %w", err)
	}
	from, err := runSetupEnvtest(ctx, index, store, report)
	if err != nil {
		return err
	}
	for _, b := range want {
		if err := os.Rename(filepath.Join(from, b.Name), filepath.Join(dir, b.Name)); err != nil {
			return fmt.Errorf("taking %s out of the download: %w", b.Name, err)
		}
	}
	return nil
}

// probe finds out quickly whether the list can be reached, before minutes go into a tool that cannot.
func probe(ctx context.Context, index string, report *progress.Reporter) error {
	defer report.Waiting("asking for releases of the control plane", "")()
	ctx, cancel := context.WithTimeoutCause(
		ctx, probeTimeout, fmt.Errorf("no answer from %s in %s", index, probeTimeout),
	)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, index, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", index, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err // it names the method and the URL already
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s", index, response.Status)
	}
	return nil
}

// runSetupEnvtest returns the folder that holds the downloaded programs, somewhere below store. The tool checks them
// against the sums in the index.
func runSetupEnvtest(ctx context.Context, index, store string, report *progress.Reporter) (string, error) {
	limit := "at most " + downloadTimeout.String()
	defer report.Waiting("downloading the control plane v"+minor(KubernetesVersion), limit)()
	ctx, cancel := context.WithTimeoutCause(
		ctx, downloadTimeout, errors.New("slow connection: given up after "+downloadTimeout.String()),
	)
	defer cancel()
	cmd := exec.Command("go", "run", setupEnvtest, "use", minor(KubernetesVersion)+".x",
		"--print", "path", "--bin-dir", store, "--index", index)
	cmd.Dir = store // outside of every module, so that no go.mod has a say
	cmd.Env = goEnvironment(store)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := process.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("running setup-envtest: %w: %s", err, lastLines(complaint.Bytes(), 3))
	}
	from := strings.TrimSpace(out.String())
	if !filepath.IsAbs(from) {
		return "", fmt.Errorf("running setup-envtest: its answer %q is not a folder", from)
	}
	return from, nil
}

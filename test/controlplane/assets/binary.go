package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// The versions that are searched, downloaded and built. The files in modules/ pin the same ones: after a change here,
// "go generate ./assets" rewrites them.
const (
	KubernetesVersion = "1.36.3"
	EtcdVersion       = "3.6.16"
)

// ControllerManager is the name of the program that is not among the standard ones, for Options.Extra.
const ControllerManager = "kube-controller-manager"

// answerTimeout bounds a question for a version. A loaded machine may need long to read a 100 MB program.
const answerTimeout = time.Minute

var semver = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+)\b`)

// Binary is one program of the control plane.
type Binary struct {
	Name    string // also the file's name
	Version string // without a "v": "1.36.3"
}

var standardBinaries = []Binary{
	{Name: "etcd", Version: EtcdVersion},
	{Name: "kube-apiserver", Version: KubernetesVersion},
	{Name: "kubectl", Version: KubernetesVersion},
}

// wantedBinaries gives the standard programs and the extra ones.
func wantedBinaries(extra []string) ([]Binary, error) {
	all := append([]Binary(nil), standardBinaries...)
	for _, name := range extra {
		if name != ControllerManager {
			return nil, fmt.Errorf("unknown program %q: the only extra one is %q", name, ControllerManager)
		}
		all = append(all, Binary{Name: name, Version: KubernetesVersion})
	}
	return all, nil
}

// Verify runs the file and asks for its version, which it returns. Another minor version than wanted, or no answer, is
// an error; another patch version is not, because downloads exist for few of them.
func (b Binary) Verify(ctx context.Context, file string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	args := []string{"--version"}
	if b.Name == "kubectl" {
		args = []string{"version", "--client"}
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "KUBECONFIG=") // kubectl would complain about a broken one
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, lastLines(exit.Stderr, 3))
		}
		return "", fmt.Errorf("asking %s for its version: %w", file, err)
	}
	found := semver.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("asking %s for its version: no version in the answer %q", file, lastLines(out, 3))
	}
	version = string(found[1])
	if !sameMinor(version, b.Version) {
		return "", fmt.Errorf("%s is version %s, wanted %s", file, version, b.Version)
	}
	return version, nil
}

func sameMinor(a, b string) bool {
	return minor(a) == minor(b)
}

// minor cuts the patch level off: "1.36.3" becomes "1.36".
func minor(version string) string {
	if end := strings.LastIndexByte(version, '.'); end >= 0 {
		return version[:end]
	}
	return version
}

// executable reports whether path is a regular file with an executable mode.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// lastLines gives the end of a program's output, where its error usually stands.
func lastLines(output []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

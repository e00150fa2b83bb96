package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ChromiumVariable names the environment variable with the path of the browser to use, if not the first one in PATH.
const ChromiumVariable = "KOPF_RUNTIME_CHROMIUM"

// Advice explains how to get Chromium.
const Advice = "run `make browser` as root on Debian, or install Chromium or Chrome, or set " + ChromiumVariable +
	" to its path"

// ErrNoChromium is that there is no browser on this machine.
var ErrNoChromium = errors.New("there is no Chromium: " + Advice)

// browserNames are those that distributions and Google give to the program, the usual ones first.
var browserNames = []string{
	"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// Chromium gives the path of the browser: that of [ChromiumVariable], or the first one in PATH.
//
// # Errors
//
// [ErrNoChromium], or that the variable names something that cannot be executed.
func Chromium() (string, error) {
	if wanted := os.Getenv(ChromiumVariable); wanted != "" {
		path, err := exec.LookPath(wanted)
		if err != nil {
			return "", fmt.Errorf("looking for the browser that %s names: %w", ChromiumVariable, err)
		}
		return path, nil
	}
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}

// Version asks a browser for its name and version: "Chromium 150.0.7871.100 built on Debian GNU/Linux 13 (trixie)".
func Version(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// InstallChromium returns the path of the browser, and installs Debian's package first if there is none. It prints its
// actions to report.
//
// # Errors
//
// There is no apt-get, or the process is not root, or apt-get fails; what to do is said.
func InstallChromium(ctx context.Context, report io.Writer) (string, error) {
	path, err := Chromium()
	if !errors.Is(err, ErrNoChromium) {
		return path, err
	}
	if _, lacking := exec.LookPath("apt-get"); lacking != nil || os.Geteuid() != 0 {
		return "", err
	}
	_, _ = fmt.Fprintln(report, "installing Debian's chromium by apt-get (about 100 MB, a minute, once)")
	for _, args := range [][]string{
		{"update"},
		// Others may be installing as well: their lock is waited for.
		{"-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "chromium"},
	} {
		command := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("installing Chromium: %s: %w\n%s\notherwise %s", command, err, out, Advice)
		}
	}
	return Chromium()
}

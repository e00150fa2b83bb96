package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// incompletePrefix is the name prefix of incomplete files. They are never used as results, and the holder of the lock
// may remove them.
const incompletePrefix = ".incoming-"

// cache is one version's folder below the root that all versions share.
type cache struct {
	root   string
	dir    string
	report *progress.Reporter
}

// missing lists what the cache lacks or cannot vouch for. It takes no lock and writes nothing: a complete cache may be
// read-only.
func (c *cache) missing(want []Binary) []Binary {
	m := readManifest(c.dir)
	var lacking []Binary
	for _, b := range want {
		e, ok := m.Binaries[b.Name]
		if !ok || !sameMinor(e.Version, b.Version) || !e.holds(filepath.Join(c.dir, b.Name)) {
			lacking = append(lacking, b)
		}
	}
	return lacking
}

// fill gets missing programs from the sources, one process at a time.
func (c *cache) fill(ctx context.Context, want []Binary, sources []Source) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("creating the cache folder: %w; %s", err, advice)
	}
	// One lock for all versions: two builds at once would only slow each other down.
	unlock, err := lock(ctx, filepath.Join(c.root, ".lock"), c.report)
	if err != nil {
		return fmt.Errorf("locking the cache folder %s: %w; %s", c.root, err, advice)
	}
	defer unlock()
	c.sweep()

	var failures []error
	for i, source := range sources {
		lacking := c.missing(want) // again: another process may have filled it while this one waited
		if len(lacking) == 0 {
			return nil
		}
		if err := c.fetchInto(ctx, lacking, source); err != nil {
			failures = append(failures, err)
			if ctx.Err() == nil && i < len(sources)-1 {
				c.report.Say("%s; trying the next way", firstLine(err))
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("getting the control plane's programs: %w", context.Cause(ctx))
		}
	}
	lacking := c.missing(want)
	if len(lacking) == 0 {
		return nil
	}
	return fmt.Errorf("getting %s: %w\nset %s to a folder with etcd, kube-apiserver and kubectl, or correct the "+
		"above and "+
		"try again; finished programs are kept", names(lacking), errors.Join(failures...), AssetsVariable)
}

// fetchInto lets a source write into a folder of its own and moves each program that proves good into the cache.
func (c *cache) fetchInto(ctx context.Context, want []Binary, source Source) error {
	dir, err := os.MkdirTemp(c.dir, incompletePrefix+"*")
	if err != nil {
		return fmt.Errorf("creating a folder in the cache: %w; %s", err, advice)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is swept the next time
	failures := []error{source.Fetch(ctx, want, dir, c.report)}
	for _, b := range want {
		file := filepath.Join(dir, b.Name)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		failures = append(failures, c.publish(ctx, b, file))
	}
	return errors.Join(failures...)
}

// publish makes a program visible by a rename, so that it is there completely or not at all, and then vouches for it.
// A process that is running the program which is replaced keeps the old file.
func (c *cache) publish(ctx context.Context, b Binary, file string) error {
	version, err := b.Verify(ctx, file)
	if err != nil {
		return err
	}
	described, err := describe(file, version)
	if err != nil {
		return fmt.Errorf("describing %s: %w", b.Name, err)
	}
	if err := os.Rename(file, filepath.Join(c.dir, b.Name)); err != nil {
		return fmt.Errorf("moving %s into the cache: %w", b.Name, err)
	}
	m := readManifest(c.dir)
	m.Binaries[b.Name] = described
	return m.write(c.dir)
}

// sweep removes what a killed process left behind. Only the holder of the lock may call it.
func (c *cache) sweep() {
	left, _ := filepath.Glob(filepath.Join(c.root, "*", incompletePrefix+"*"))
	for _, path := range left {
		_ = os.RemoveAll(path) // litter costs space only; the next holder tries again
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func names(binaries []Binary) string {
	var all []string
	for _, b := range binaries {
		all = append(all, b.Name+" v"+b.Version)
	}
	return strings.Join(all, ", ")
}

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// diagrams is the folder of the diagrams: their sources for d2, and beside each its picture, which GitHub shows.
const diagrams = "docs/diagrams"

// d2Arguments have d2 draw without padding, in the colours of a light and of a dark page.
var d2Arguments = []string{"--layout", "dagre", "--theme", "0", "--dark-theme", "200", "--pad", "8"}

// stamp ends a picture: the digest of the source and of the arguments that it was drawn from.
func stamp(source []byte) string {
	sum := sha256.Sum256(append([]byte(strings.Join(d2Arguments, " ")), source...))
	return "<!-- drawn by make docs from " + hex.EncodeToString(sum[:8]) + " -->\n"
}

// outdated returns the sources of the diagrams whose pictures are missing, or were drawn from another source.
func outdated(sources fs.FS) (names []string, err error) {
	all, err := fs.Glob(sources, diagrams+"/*.d2")
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		source, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		picture, err := fs.ReadFile(sources, pictureOf(name))
		if err != nil || !bytes.HasSuffix(picture, []byte(stamp(source))) {
			names = append(names, name)
		}
	}
	return names, nil
}

func pictureOf(source string) string { return strings.TrimSuffix(source, ".d2") + ".svg" }

// draw draws the outdated diagrams. It builds d2 only if there are any.
func draw(root, tools string, out io.Writer) error {
	names, err := outdated(os.DirFS(root))
	if err != nil || len(names) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(out, "drawing diagrams: the first time waits for building d2, some minutes")
	temporary, err := os.MkdirTemp("", "kopf-runtime-d2-")
	if err != nil {
		return fmt.Errorf("making a folder for d2: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	program := filepath.Join(temporary, "d2")
	build := exec.Command("go", "build", "-C", tools, "-o", program, "oss.terrastruct.com/d2") //nolint:gosec // ours
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building d2 of %s: %w\n%s", tools, err, output)
	}
	for _, name := range names {
		source, picture := filepath.Join(root, name), filepath.Join(root, pictureOf(name))
		arguments := append(append([]string{}, d2Arguments...), source, picture)
		if output, err := exec.Command(program, arguments...).CombinedOutput(); err != nil { //nolint:gosec // d2
			return fmt.Errorf("drawing %s: %w\n%s", name, err, output)
		}
		if err := addStamp(source, picture); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, "drew", pictureOf(name))
	}
	return nil
}

func addStamp(source, picture string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("reading the source of a diagram: %w", err)
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		return fmt.Errorf("reading a diagram: %w", err)
	}
	drawn = append(append(bytes.TrimRight(drawn, "\n"), '\n'), stamp(content)...)
	return os.WriteFile(picture, drawn, 0o644) //nolint:gosec // it is committed
}

// preferDark is the condition for the dark colours of a picture; always and never are conditions in its place.
const (
	preferDark    = "(prefers-color-scheme:dark)"
	alwaysMatches = "(min-width:0)"
	neverMatches  = "(max-width:0)"
)

// picture adds the file of a picture to the site. A diagram becomes two pictures: the reader can switch the page to
// other colours than those of the system.
func (p *page) picture(label, file string) (string, error) {
	content, err := fs.ReadFile(p.sources, file)
	if err != nil {
		return "", err
	}
	base := path.Base(file)
	if path.Dir(file) != diagrams {
		p.files["pages/pictures/"+base] = content
		return fmt.Sprintf("![%s](pictures/%s)", label, base), nil
	}
	if !bytes.Contains(content, []byte(preferDark)) {
		return "", fmt.Errorf("%s does not have colours for dark pages", file)
	}
	var result strings.Builder
	for _, variant := range []struct{ mode, condition string }{{"light", neverMatches}, {"dark", alwaysMatches}} {
		name := strings.TrimSuffix(base, ".svg") + "-" + variant.mode + ".svg"
		p.files["pages/diagrams/"+name] = bytes.ReplaceAll(content, []byte(preferDark), []byte(variant.condition))
		fmt.Fprintf(&result, "![%s](diagrams/%s){ .diagram .%s }\n", label, name, variant.mode)
	}
	return strings.TrimRight(result.String(), "\n"), nil
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// development is the folder of the manual of the branch main.
const development = "main"

// versionMenu has the theme request the list of versions, which is beside the folder of each version, for a menu in the
// header. It is the format of mike, which is not needed for that.
const versionMenu = "extra:\n  version: {provider: mike, default: latest}\n"

// manual is an entry of versions.json.
type manual struct {
	Version string   `json:"version"`
	Title   string   `json:"title"`
	Aliases []string `json:"aliases"`
}

var folderOfVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[\w.-]+)?$|^` + development + `$`)

// withVersionMenu adds the menu of versions to a configuration of the generator.
func withVersionMenu(configuration []byte) ([]byte, error) {
	if !bytes.Contains(configuration, []byte("\nextra:\n")) {
		return nil, errors.New("docs/site/mkdocs.yml does not have the section extra")
	}
	return bytes.Replace(configuration, []byte("extra:\n"), []byte(versionMenu), 1), nil
}

// publish copies a built site into the folder of its version, and lists all versions that are there.
func publish(built, into, ref string) error {
	if !folderOfVersion.MatchString(ref) {
		return fmt.Errorf("publishing the manual: %q is neither a tag of a version nor %s", ref, development)
	}
	folder := filepath.Join(into, ref)
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the former manual of %s: %w", ref, err)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("making the folder of all manuals: %w", err)
	}
	if err := os.CopyFS(folder, os.DirFS(built)); err != nil {
		return fmt.Errorf("copying the manual of %s: %w", ref, err)
	}
	all, err := versions(os.DirFS(into))
	if err != nil {
		return err
	}
	list, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("listing the versions: %w", err)
	}
	for name, content := range map[string][]byte{"versions.json": list, "index.html": overview(all)} {
		if err := os.WriteFile(filepath.Join(into, name), content, 0o644); err != nil { //nolint:gosec // it is served
			return fmt.Errorf("listing the versions: %w", err)
		}
	}
	return nil
}

// versions returns the versions that have a manual: the newest release first, and the development last. The first one
// has the alias latest.
func versions(published fs.FS) (all []manual, err error) {
	entries, err := fs.ReadDir(published, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the versions: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() && folderOfVersion.MatchString(entry.Name()) {
			all = append(all, manual{Version: entry.Name(), Title: strings.TrimPrefix(entry.Name(), "v")})
		}
	}
	slices.SortFunc(all, func(a, b manual) int {
		rankOfA, versionOfA := rank(a.Version)
		rankOfB, versionOfB := rank(b.Version)
		switch {
		case rankOfA != rankOfB:
			return cmp.Compare(rankOfA, rankOfB)
		case versionOfB.LessThan(versionOfA):
			return -1
		}
		return 1 // names are unique
	})
	for i := range all {
		if all[i].Aliases = []string{}; i == 0 {
			all[i].Aliases = []string{"latest"}
		}
	}
	return all, nil
}

// rank orders releases before pre-releases, and these before the development, which has the version 0.0.0.
func rank(name string) (int, *version.Version) {
	parsed, err := version.ParseSemantic(name)
	switch {
	case err != nil:
		return 2, version.MustParseSemantic("0.0.0")
	case parsed.PreRelease() != "":
		return 1, parsed
	}
	return 0, parsed
}

// overview is the page above the manuals: a link to each.
func overview(all []manual) []byte {
	var page strings.Builder
	page.WriteString("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width\">\n" +
		"<meta name=\"color-scheme\" content=\"light dark\">\n" +
		"<title>kopf-runtime: manuals</title>\n<h1>kopf-runtime</h1>\n<p>The manual of each version:</p>\n<ul>\n")
	for _, one := range all {
		note := ""
		switch {
		case one.Version == development:
			note = ", under development"
		case slices.Contains(one.Aliases, "latest"):
			note = ", the latest"
		}
		fmt.Fprintf(&page, "<li><a href=\"%s/index.html\">%s</a>%s</li>\n",
			html.EscapeString(one.Version), html.EscapeString(one.Title), note)
	}
	page.WriteString("</ul>\n</html>\n")
	return []byte(page.String())
}

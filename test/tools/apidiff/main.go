// Command apidiff reports what changed in the promised packages between two versions of this repository.
//
//	apidiff [-fail] OLD NEW
//
// OLD and NEW are folders with complete sources. The promised packages are those that test/layers/promises.go lists in
// either of them. With -fail, incompatible changes exit with code 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io"
	"os"
	"slices"

	"golang.org/x/exp/apidiff"
)

func main() {
	fail := flag.Bool("fail", false, "exit with 1 if there are incompatible changes")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: apidiff [-fail] OLD NEW")
		os.Exit(2)
	}
	incompatible, err := compareVersions(os.Stdout, flag.Arg(0), flag.Arg(1))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "apidiff:", err)
		os.Exit(2)
	case incompatible > 0 && *fail:
		fmt.Printf("%d incompatible changes\n", incompatible)
		os.Exit(1)
	case incompatible > 0:
		fmt.Printf("%d incompatible changes; they are allowed before the first tag\n", incompatible)
	default:
		fmt.Println("no incompatible changes")
	}
}

// compareVersions writes a report of all packages, and counts the incompatible changes.
func compareVersions(out io.Writer, before, after string) (incompatible int, err error) {
	promised, err := promisedFolders(after)
	if err != nil {
		return 0, err
	}
	// Versions before the list existed did not promise anything beyond the present promise.
	former, err := promisedFolders(before)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	for _, folder := range former {
		if !slices.Contains(promised, folder) {
			promised = append(promised, folder)
		}
	}
	old, err := loadPackages(before, promised)
	if err != nil {
		return 0, fmt.Errorf("loading the former version: %w", err)
	}
	current, err := loadPackages(after, promised)
	if err != nil {
		return 0, fmt.Errorf("loading this version: %w", err)
	}
	for _, folder := range promised {
		incompatible += comparePackage(out, folder, old[folder], current[folder])
	}
	return incompatible, nil
}

// comparePackage returns the number of incompatible changes.
func comparePackage(out io.Writer, folder string, old, current *types.Package) (incompatible int) {
	switch {
	case old == nil && current == nil:
		return 0
	case old == nil:
		_, _ = fmt.Fprintf(out, "%s: added\n", folder)
		return 0
	case current == nil:
		_, _ = fmt.Fprintf(out, "%s: removed (incompatible)\n", folder)
		return 1
	}
	for _, change := range apidiff.Changes(old, current).Changes {
		if change.Compatible {
			_, _ = fmt.Fprintf(out, "%s: %s\n", folder, change.Message)
			continue
		}
		_, _ = fmt.Fprintf(out, "%s: %s (incompatible)\n", folder, change.Message)
		incompatible++
	}
	return incompatible
}

package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	base := flag.String("base", "", "check only lines that changed since the merge base with this commit")
	flag.Parse()
	failed, err := check(*root, *base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// check prints the errors of the files below root, and a count of the suggestions. It returns whether there are errors.
func check(root, base string) (failed bool, err error) {
	lines, err := linesToCheck(root, base)
	if err != nil {
		return false, err
	}
	texts, err := extract(root, slices.Sorted(maps.Keys(lines)))
	if err != nil {
		return false, err
	}
	alerts, err := runVale(texts)
	if err != nil {
		return false, err
	}
	suggestions, errors := 0, 0
	for _, a := range alerts {
		switch {
		case !lines[a.File].contains(a.Line):
		case a.Severity == "error":
			errors++
			fmt.Printf("%s:%d: %s (%s)\n", a.File, a.Line, a.Message, a.Check)
		default:
			suggestions++
		}
	}
	fmt.Printf("%d files: %d errors, %d suggestions\n", len(texts), errors, suggestions)
	if errors > 0 {
		fmt.Println("Rewrite the sentences above in plain English: subject, verb, object.")
	}
	return errors > 0, nil
}

package calltrace

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/calltrace/record"
)

// Summary is what a story passes through.
type Summary struct {
	// Functions are those that were called, by package and file, sorted.
	Functions map[string]map[string][]string
	// EntryCounts is how often each package was called from another one, or from outside of the product.
	EntryCounts map[string]int
	// CallOrder is when a function was called for the first time, by its name with its package: 0 for the first of all.
	CallOrder map[string]int
}

// Summarize puts calls in order.
func Summarize(calls []record.Call) Summary {
	s := Summary{Functions: map[string]map[string][]string{}, EntryCounts: map[string]int{},
		CallOrder: map[string]int{}}
	for _, call := range calls {
		folder, file := path.Dir(call.File), path.Base(call.File)
		if slices.Contains(excludedPackages, folder) {
			continue
		}
		if s.Functions[folder] == nil {
			s.Functions[folder] = map[string][]string{}
		}
		if call.Caller == "" || path.Dir(call.Caller) != folder {
			s.EntryCounts[folder]++
		}
		name := path.Base(folder) + "." + call.Function
		if _, known := s.CallOrder[name]; !known && call.Function != "" {
			s.CallOrder[name] = len(s.CallOrder)
		}
		if call.Function != "" && !slices.Contains(s.Functions[folder][file], call.Function) {
			s.Functions[folder][file] = append(s.Functions[folder][file], call.Function)
		}
	}
	for _, files := range s.Functions {
		for _, functions := range files {
			slices.Sort(functions)
		}
	}
	return s
}

// excludedPackages are packages that carry bytes, as clients and below them: they are on the way of requests, not of
// objects, and how often they are called depends on the pieces in which the bytes come; and the journal, which is
// optional and not used here.
var excludedPackages = []string{
	"reconcilers/health", "reconcilers/internal/informers", "internal/transport", "reconcilers/journal",
}

// Files is how many files under the folder have a function that was called.
func (s Summary) Files(under string) (files int) {
	for folder, inside := range s.Functions {
		if folder == under || strings.HasPrefix(folder, under+"/") {
			files += len(inside)
		}
	}
	return files
}

// jsonPackages are the packages that read and write JSON values and annotations. They are not counted as the engine.
var jsonPackages = []string{"internal/asciijson", "internal/controls", "internal/jsontext", "internal/keys"}

// EngineFiles is how many files of the engine have a function that was called.
func (s Summary) EngineFiles() int {
	files := s.Files("reconcilers") + s.Files("internal")
	for _, folder := range jsonPackages {
		files -= s.Files(folder)
	}
	return files
}

// tourLine matches a line of a tour: a function with its package, and a description.
var tourLine = regexp.MustCompile(`(?m)^//\t(\S+) +\S`)

// Mistakes compares a tour with the calls: all of its functions must be called in order.
func (s Summary) Mistakes(tour string) (mistakes []string) {
	last := ""
	for _, found := range tourLine.FindAllStringSubmatch(tour, -1) {
		name := found[1]
		first, called := s.CallOrder[name]
		switch {
		case !called:
			mistakes = append(mistakes, name+" is not called")
			continue
		case last != "" && first < s.CallOrder[last]:
			mistakes = append(mistakes, name+" is called before "+last)
		}
		last = name
	}
	if last == "" && mistakes == nil {
		mistakes = []string{"it names no function"}
	}
	return mistakes
}

// String is the form in testdata: a line for each file, under its package.
func (s Summary) String() string {
	functions := 0
	var text strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(s.Functions)) {
		fmt.Fprintf(&text, "\n%s, entered %s\n", folder, s.formatEntries(folder))
		for _, file := range slices.Sorted(maps.Keys(s.Functions[folder])) {
			called := s.Functions[folder][file]
			functions += len(called)
			fmt.Fprintf(&text, "  %s: %s\n", file, cmp.Or(strings.Join(called, " "), "(literals of variables)"))
		}
	}
	head := fmt.Sprintf(
		"One created object with one handler: %d files of the engine, %d of the storages, %d of the facade; "+
			"%d functions.\n", s.EngineFiles(), s.Files("storage"), s.Files("facade"), functions,
	)
	return head + text.String()
}

// watchPackages are the packages that every event of a watch leads through. Informers end their watches at random, and
// ask for the next one.
var watchPackages = []string{"internal/compact", "internal/jsontext"}

func (s Summary) formatEntries(folder string) string {
	n := s.EntryCounts[folder]
	switch {
	case slices.Contains(watchPackages, folder):
		return "for every event of a watch"
	case n == 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

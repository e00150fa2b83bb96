package benchmarks

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Margin is by how many percent allocations may rise over the recorded ones before that has to be looked at.
const Margin = 20

// Figures are the allocations of one operation by benchmark, such as "storage/diff.BenchmarkCompute/Pod/Equal": the
// least of all its runs, for what else happens in the process only adds to them.
type Figures map[string]int64

const module = "github.com/kopf-runtime/kopf-runtime/"

var (
	allocsLine  = regexp.MustCompile(`^(Benchmark\S*)\s.*\s(\d+) allocs/op`)
	procsSuffix = regexp.MustCompile(`-\d+$`)
)

// Read takes the figures from the output of go test -bench -benchmem, in which names end with a number of processors or
// not. Benchmarks without allocation figures are left out.
func Read(output io.Reader) (Figures, error) {
	figures, folder := Figures{}, ""
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if path, is := strings.CutPrefix(lines.Text(), "pkg: "); is {
			folder = strings.TrimPrefix(path, module)
			continue
		}
		found := allocsLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		allocations, err := strconv.ParseInt(found[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the figures of %s: %w", found[1], err)
		}
		name := folder + "." + procsSuffix.ReplaceAllString(found[1], "")
		if least, is := figures[name]; !is || allocations < least {
			figures[name] = allocations
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading figures: %w", err)
	}
	return figures, nil
}

// Of are the figures of one benchmark with all below it.
func (f Figures) Of(benchmark string) Figures {
	own := Figures{}
	for name, allocations := range f {
		if name == benchmark || strings.HasPrefix(name, benchmark+"/") {
			own[name] = allocations
		}
	}
	return own
}

// Compare lists the measured figures that are more than [Margin] over the recorded ones, and those that are only
// measured or only recorded, one per line.
func Compare(recorded, measured Figures) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		was, is := recorded[name]
		switch now := measured[name]; {
		case !is:
			wrong = append(wrong, name+" is not recorded")
		case now*100 > was*(100+Margin):
			wrong = append(wrong, fmt.Sprintf("%s makes %d allocations, and made %d", name, now, was))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if _, is := measured[name]; !is {
			wrong = append(wrong, name+" is recorded, and was not measured")
		}
	}
	return wrong
}

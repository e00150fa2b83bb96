package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report has the figures of every package.
type report struct{ rows []row }

type row struct {
	dir                                         string
	total, killed, survived, unreached, untried int
}

// killedPercent is that of the changes which a test reaches; with none of these there is nothing to complain of.
func (r row) killedPercent() int { return percent(r.killed, r.killed+r.survived, 100) }

func (r row) unreachedPercent() int { return percent(r.unreached, r.total, 0) }

func percent(part, of, none int) int {
	if of == 0 {
		return none
	}
	return 100 * part / of
}

// add writes down a package, and lists what no test has noticed.
func (r *report) add(to io.Writer, dir string, mutants []*mutant) {
	one := row{dir: dir, total: len(mutants)}
	count := map[outcome]*int{
		killed: &one.killed, survived: &one.survived, unreached: &one.unreached, untried: &one.untried,
	}
	for _, mutant := range mutants {
		*count[mutant.outcome]++
		switch mutant.outcome {
		case survived:
			_, _ = fmt.Fprintf(to, "%v survived the tests of %s\n", mutant, strings.Join(mutant.tests, ", "))
		case unreached:
			_, _ = fmt.Fprintf(to, "%v is reached by no test\n", mutant)
		}
	}
	r.rows = append(r.rows, one)
}

func (r *report) table(to io.Writer) {
	if len(r.rows) == 0 {
		return
	}
	slices.SortStableFunc(r.rows, func(a, b row) int { return cmp.Compare(a.dir, b.dir) })
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "package\tchanges\tkilled\tsurvived\tnot reached\tnot tried")
	for _, one := range append(slices.Clone(r.rows), r.sum()) {
		_, _ = fmt.Fprintf(
			out, "%s\t%d\t%d %%\t%d\t%d %%\t%d\n", one.dir, one.total, one.killedPercent(), one.survived,
			one.unreachedPercent(), one.untried,
		)
	}
	_ = out.Flush()
}

// sum returns the figures of all packages together.
func (r *report) sum() row {
	sum := row{dir: "all"}
	for _, one := range r.rows {
		sum.total += one.total
		sum.killed += one.killed
		sum.survived += one.survived
		sum.unreached += one.unreached
		sum.untried += one.untried
	}
	return sum
}

func (r *report) survivors() int {
	sum := r.sum()
	return sum.survived + sum.unreached
}

// weak says whether a package is weak.
func (r *report) weak(killed, unreached int) bool {
	return slices.ContainsFunc(r.rows, func(one row) bool { return one.isWeak(killed, unreached) })
}

// isWeak says whether less than so many percent are killed, or more than so many are not reached.
func (r row) isWeak(killed, unreached int) bool {
	return r.killedPercent() < killed || r.unreachedPercent() > unreached
}

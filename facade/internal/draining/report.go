package draining

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
)

// Row counts the objects of one kind, or the things of another sort.
type Row struct {
	// What contains the resource, such as "websites.example.org", or the sort.
	What string
	// Examined is the number of objects, Found that of objects with things of the operator, and Removed that of objects
	// without them now.
	Examined, Found, Removed int
}

// StoredItem is one object with things of the operator.
type StoredItem struct {
	// Object is its kind and name. What lists the things on it.
	Object, What string
	// Reason is why they are left; empty in a check.
	Reason string
}

// DrainReport is the result of a drain.
type DrainReport struct {
	Rows []Row
	// Items are the found things in a check, and those that are left in a drain.
	Items []StoredItem
	// Notes are remarks for the user.
	Notes []string
}

// Print writes the report as text: the items, the notes, and a table.
func (r *DrainReport) Print(out io.Writer) error {
	for _, one := range r.Items {
		parts := slices.DeleteFunc([]string{one.What, one.Reason}, func(part string) bool { return part == "" })
		_, _ = fmt.Fprintf(out, "%s: %s\n", one.Object, strings.Join(parts, ": "))
	}
	for _, note := range r.Notes {
		_, _ = fmt.Fprintf(out, "%s.\n", note)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "WHAT\tEXAMINED\tFOUND\tREMOVED")
	for _, row := range r.Rows {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", row.What, row.Examined, row.Found, row.Removed)
	}
	return table.Flush()
}

// results collects the report. Its methods may be called concurrently.
type results struct {
	mu    sync.Mutex
	rows  map[string]*Row
	items map[string]StoredItem // by object
	notes []string

	foreign int    // annotations with the prefix that the operator has not written
	example string // one of them
}

// newResults returns empty results.
func newResults() *results { return &results{rows: map[string]*Row{}, items: map[string]StoredItem{}} }

// count counts one examined object.
func (r *results) count(what string, found, removed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := cmp.Or(r.rows[what], &Row{What: what})
	r.rows[what] = row
	row.Examined++
	if found {
		row.Found++
	}
	if removed {
		row.Removed++
	}
}

// keepForeign counts annotations that stay, because the operator has not written them.
func (r *results) keepForeign(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign += len(names); len(names) > 0 {
		r.example = names[0]
	}
}

// list reports things that a check has found.
func (r *results) list(object, what string) { r.add(StoredItem{Object: object, What: what}) }

// leave reports things that are left, with the reason.
func (r *results) leave(object, what string, reason error) {
	r.add(StoredItem{Object: object, What: what, Reason: reason.Error()})
}

// add adds an item, in place of another one of the object.
func (r *results) add(item StoredItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items[item.Object] = item
}

// note adds a remark, once.
func (r *results) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// report returns the sorted results.
func (r *results) report() *DrainReport {
	report := &DrainReport{Notes: r.notes}
	if r.foreign > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d annotations with the prefix of the operator stay, as it "+
			"has not written them, such as %s", r.foreign, r.example))
	}
	for _, what := range slices.Sorted(maps.Keys(r.rows)) {
		report.Rows = append(report.Rows, *r.rows[what])
	}
	for _, object := range slices.Sorted(maps.Keys(r.items)) {
		report.Items = append(report.Items, r.items[object])
	}
	return report
}

// logInterval is the time between two lines about the progress.
const logInterval = 10 * time.Second

// logState logs the present numbers.
func (r *results) logState(log logr.Logger, kind *string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum Row
	for _, row := range r.rows {
		sum.Examined, sum.Found, sum.Removed = sum.Examined+row.Examined, sum.Found+row.Found, sum.Removed+row.Removed
	}
	log.Info("Drain is running", "kind", ptr.Deref(kind, ""), "examined", sum.Examined, "found", sum.Found,
		"removed", sum.Removed)
}

package clusterneeds

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// CheckStatus is the result of a check.
type CheckStatus string

// The results. Only Failed means that the operator does not work.
const (
	OK      CheckStatus = "ok"
	Warning CheckStatus = "warning"
	Failed  CheckStatus = "failed"
	Unknown CheckStatus = "unknown"
)

// severities are the results in the order of reports.
var severities = []CheckStatus{Failed, Warning, Unknown, OK}

// Finding is the result of one check.
type Finding struct {
	Status CheckStatus `json:"status"`
	// Check is the kind of the check, such as "permission", and Subject its object.
	Check   string `json:"check"`
	Subject string `json:"subject"`
	// Feature is what needs the subject, if it is not clear from the check.
	Feature string `json:"feature,omitempty"`
	// Handlers are the ids of the handlers that the problem affects; none means the operator as a whole.
	Handlers []string `json:"handlers,omitempty"`
	// Problem is the effect or the reason, and Fix is what to do, in one line. Both are empty if all is well.
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// CheckReport has the results of all checks, problems first.
type CheckReport struct {
	Operator string    `json:"operator"`
	Findings []Finding `json:"findings"`
}

// Count returns how many checks have the result.
func (r CheckReport) Count(status CheckStatus) (n int) {
	for _, one := range r.Findings {
		if one.Status == status {
			n++
		}
	}
	return n
}

// Err returns an error if a check has failed.
func (r CheckReport) Err() error {
	if failed := r.Count(Failed); failed > 0 {
		return fmt.Errorf("operator %q: %d of %d checks failed", r.Operator, failed, len(r.Findings))
	}
	return nil
}

// WriteJSON writes the report for programs.
func (r CheckReport) WriteJSON(to io.Writer) error { return clusterops.WriteJSON(to, r) }

// WriteText writes the report for people: a table, and the reason and the fix of each problem after it.
func (r CheckReport) WriteText(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "STATUS\tCHECK\tSUBJECT\tHANDLERS") // Flush returns the errors
	for _, one := range r.Findings {
		who := cmp.Or(strings.Join(one.Handlers, ","), "-")
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.Status, one.Check, oneLine(one.Subject), oneLine(who))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	var text strings.Builder
	for _, one := range r.Findings {
		if one.Status == OK {
			continue
		}
		fmt.Fprintf(&text, "\n%s: %s %s", one.Status, one.Check, oneLine(one.Subject))
		if one.Feature != "" {
			fmt.Fprintf(&text, " (%s)", one.Feature)
		}
		fmt.Fprintf(&text, "\n  problem: %s\n", oneLine(one.Problem))
		if one.Fix != "" {
			fmt.Fprintf(&text, "  fix:     %s\n", oneLine(one.Fix))
		}
	}
	fmt.Fprintf(&text, "\n%d ok, %d failed, %d warnings, %d unknown\n",
		r.Count(OK), r.Count(Failed), r.Count(Warning), r.Count(Unknown))
	if _, err := io.WriteString(to, text.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// oneLine returns a text in one line, such as the id of a handler or an error.
func oneLine(text string) string { return clusterops.OneLine(strings.Join(strings.Fields(text), " ")) }

// handlerIDs returns the ids of the user's handlers, each once. Other handlers exist only for the operator itself.
func handlerIDs(all []*handlers.Handler) (ids []string) {
	for _, h := range all {
		if (h.Call != nil || h.Index != nil) && !slices.Contains(ids, h.ID) {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

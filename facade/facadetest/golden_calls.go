package facadetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// virtualTimeEnd separates virtual from real time. The clock of a testing/synctest bubble starts with the year 2000,
// and tests do not run for 20 virtual years.
var virtualTimeEnd = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// moment is the time of a call or a write, reduced to the part that is the same in each run.
type moment struct {
	isVirtual bool          // true in virtual time
	since     time.Duration // since time zero of the operator
}

// newMoment returns the moment of a time, given time zero of the operator. Earlier times count as zero: calls of
// activities precede readiness by a varying time.
func newMoment(at, zero time.Time) moment {
	return moment{isVirtual: at.Before(virtualTimeEnd), since: max(0, at.Sub(zero).Round(time.Second))}
}

// compareTime orders moments. In real time all are equal, so that the next sort criterion decides.
func (m moment) compareTime(other moment) int {
	if !m.isVirtual || !other.isVirtual {
		return 0
	}
	return cmp.Compare(m.since, other.since)
}

// formatLine returns the text with the time in front of its first line, if known. Further lines are indented by the
// same width.
func (m moment) formatLine(text string) string {
	margin := 0
	if m.isVirtual {
		margin = 10
		text = fmt.Sprintf("%-*s%s", margin, m.since.String()+" ", text)
	}
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", margin)) + "\n"
}

// formatCalls formats handler calls, one line for each, in an order that is the same in each run.
func (p goldenFormatter) formatCalls(calls []HandlerCall) string {
	calls = slices.Clone(calls)
	// The sort is stable, and the last criterion is empty for changes: calls for changes of one object keep their
	// order.
	slices.SortStableFunc(calls, func(a, b HandlerCall) int {
		return cmp.Or(
			a.moment.compareTime(b.moment), cmp.Compare(a.sortStage(), b.sortStage()), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(p.names.NormalizeText(a.Name), p.names.NormalizeText(b.Name)),
			cmp.Compare(a.lane, b.lane),
		)
	})
	var text strings.Builder
	text.WriteString("# calls\n")
	for _, c := range calls {
		told := c.String()
		// The duration of an unfinished call is negative, as its Ended is zero, and is left out.
		if took := c.Ended.Sub(c.Began).Round(time.Second); c.moment.isVirtual && took > 0 {
			told += fmt.Sprintf(" (took %s)", took)
		}
		text.WriteString(c.moment.formatLine(p.names.NormalizeText(told)))
	}
	return text.String()
}

// sortStage sorts the activities of the start before all other calls in the same second, and those of the cleanup after
// them.
func (c HandlerCall) sortStage() int {
	switch {
	case c.Kind == "" && (c.Reason == "startup" || c.Reason == "login"):
		return 0
	case c.Kind == "" && c.Reason == "cleanup":
		return 2
	default:
		return 1
	}
}

// objectPath returns the path of the written object, without the subresource: writes to an object and to its status are
// sorted together.
func (w Write) objectPath() string { return strings.TrimSuffix(w.Path, "/status") }

// formatWrites formats write requests, one line for each, followed by the body. Kubernetes events, keep-alives and
// leases are left out.
func (p goldenFormatter) formatWrites(writes []Write) string {
	writes = slices.DeleteFunc(slices.Clone(writes), Write.isOperatorState)
	slices.SortStableFunc(writes, func(a, b Write) int {
		return cmp.Or(a.moment.compareTime(b.moment),
			cmp.Compare(p.names.NormalizeText(a.objectPath()), p.names.NormalizeText(b.objectPath())))
	})
	var text strings.Builder
	text.WriteString("# writes\n")
	for _, w := range writes {
		write := p.names.NormalizeText(w.String()) + "\n" + p.formatBody(w.Body)
		text.WriteString(w.moment.formatLine(strings.TrimRight(write, "\n ")))
	}
	return text.String()
}

// formatBody returns the request body as indented YAML, normalized. A body that is not JSON is returned as text.
func (p goldenFormatter) formatBody(sent []byte) string {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(sent, &value); err != nil {
		return p.names.NormalizeText(string(sent))
	}
	switch v := value.(type) {
	case map[string]any:
		value = p.names.NormalizeObject(v)
	// A list is a JSON patch. Its resourceVersion is a value beside a path, which the normalization of objects does not
	// find.
	case []any:
		for _, operation := range v {
			if one, ok := operation.(map[string]any); ok && one["path"] == "/metadata/resourceVersion" {
				one["value"] = "<resourceVersion>"
			}
		}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return p.names.NormalizeText(string(sent))
	}
	return "  " + strings.ReplaceAll(p.names.NormalizeText(string(text)), "\n", "\n  ")
}

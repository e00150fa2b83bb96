package planning

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
)

// WriteText writes the report for users: the warnings, the summary, and the objects of each handler, at most so many of
// each; negative is all. Values cannot control the terminal, because control characters are replaced.
func (r *ChangePlan) WriteText(w io.Writer, most int) error {
	// Build the whole text first, so that only one write can fail.
	t := &reportText{most: most}
	for _, warning := range r.Warnings {
		t.addLine("WARNING: %s.\n", warning)
	}
	t.addSummary(r)
	for _, h := range r.Handlers {
		t.addObjects("HANDLER "+h.Kind+" "+h.Handler+" ("+h.On+")", r.Objects, h.lineFor)
	}
	t.addObjects("LEFTOVERS, which no handler uses", r.Objects, func(o *PlannedObject) string {
		return strings.Join(o.Leftovers, ", ")
	})
	t.addObjects("ERRORS: these objects would not be handled", r.Objects, func(o *PlannedObject) string {
		return o.Error
	})
	_, err := w.Write(t.Bytes())
	return err
}

// reportText is the output of WriteText.
type reportText struct {
	bytes.Buffer
	most int
}

// addLine adds a line. Only the newlines of the format are kept.
func (t *reportText) addLine(format string, values ...any) {
	for i, value := range values {
		if text, is := value.(string); is {
			values[i] = clusterops.OneLine(text)
		}
	}
	_, _ = fmt.Fprintf(t, format+"\n", values...)
}

// addSummary adds the table of the handlers.
func (t *reportText) addSummary(r *ChangePlan) {
	table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	row := func(cells ...any) { // writes to a buffer do not fail
		texts := make([]string, 0, len(cells))
		for _, cell := range cells {
			texts = append(texts, clusterops.OneLine(fmt.Sprint(cell)))
		}
		_, _ = fmt.Fprintln(table, strings.Join(texts, "\t"))
	}
	row("KIND", "HANDLER", "ON", "CREATE", "UPDATE", "DELETE", "RESUME", "WAITING", "START")
	for _, h := range r.Handlers {
		row(h.Kind, h.Handler, h.On, h.Creations, h.Updates, h.Deletions, h.Resumes, h.Waiting, h.Starts)
	}
	_ = table.Flush()
	t.addLine("\n%d objects need a handler or attention, %d do not.", len(r.Objects), r.Untouched)
}

// addObjects adds a section with the objects for which lineFor returns a text, if there are any.
func (t *reportText) addObjects(title string, all []PlannedObject, lineFor func(*PlannedObject) string) {
	var lines []string
	for i := range all {
		if text := lineFor(&all[i]); text != "" {
			object := cache.NewObjectName(all[i].Namespace, all[i].Name)
			lines = append(lines, object.String()+": "+text)
		}
	}
	if len(lines) == 0 {
		return
	}
	t.addLine("\n%s", title)
	shown := lines
	if t.most >= 0 {
		shown = lines[:min(t.most, len(lines))]
	}
	for _, line := range shown {
		t.addLine("  %s", line)
	}
	if more := len(lines) - len(shown); more > 0 {
		t.addLine("  and %d more, see --all", more)
	}
}

// lineFor returns what the handler would do for the object; empty if nothing.
func (s *HandlerSummary) lineFor(o *PlannedObject) string {
	if o.Kind != s.Kind {
		return ""
	}
	for _, h := range o.Handlers {
		if h.Handler != s.Handler || h.On != s.On || h.State == Finished {
			continue
		}
		text := h.State + " for " + o.Reason + "; " + o.Why
		if h.Attempts > 0 {
			text += fmt.Sprintf("; %d attempts before", h.Attempts)
		}
		if o.Dropped != "" {
			text += "; " + o.Dropped
		}
		return text
	}
	switch {
	case s.On == "event" && slices.Contains(o.Notified, s.Handler):
		return "gets the object"
	case (s.On == "daemon" || s.On == "timer") && slices.Contains(o.Starting, s.Handler):
		return "starts"
	}
	return ""
}

package clusterops

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// WriteJSON writes the report for programs.
func (r ReplicaReport) WriteJSON(to io.Writer) error { return WriteJSON(to, r) }

// WriteText writes the report for users: a table of the replicas for each group.
func (r ReplicaReport) WriteText(to io.Writer) error {
	var text strings.Builder
	for i, g := range r.Groups {
		if i > 0 {
			text.WriteString("\n")
		}
		g.writeText(&text, r)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// writeText adds the text of one group.
func (g ReplicaGroup) writeText(text *strings.Builder, r ReplicaReport) {
	shared, ranges := fmt.Sprintf("%d replicas share", len(g.Replicas)), fmt.Sprintf("%d ranges", g.Count)
	if len(g.Replicas) == 1 {
		shared = "1 replica shares"
	}
	if g.Count == 0 {
		ranges = "no ranges now"
	}
	shared += " " + ranges
	fmt.Fprintf(text, "Operator %s: %s by Leases of %s/%s.\n", r.Operator, shared, g.Namespace, r.Lease)
	if g.Elected != "" {
		fmt.Fprintf(text, "%s handles all objects until it ends: it is an elected leader.\n", printable(g.Elected))
	}
	if len(g.Replicas) > 0 {
		text.WriteString("\n")
		table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "REPLICA\tRANGES\tOBJECTS\tBACKLOG\tRENEWED\tSTATE")
		for _, one := range g.Replicas {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", printable(one.Identity), rangesText(one.Ranges),
				one.Load.Objects, one.Load.Backlog, age(r.At.Sub(one.Renewed), one.Renewed), g.state(one))
		}
		_ = table.Flush() // a strings.Builder does not fail
	}
	if len(g.Unowned) > 0 {
		indexes := make([]int, len(g.Unowned))
		for i, one := range g.Unowned {
			indexes[i] = one.Index
		}
		fmt.Fprintf(text, "\nRanges without an owner, whose objects are not handled: %s (%d of %d)\n",
			FormatRanges(indexes), len(indexes), g.Count)
	}
}

// rangesText returns the ranges of a replica with their number.
func rangesText(indexes []int) string {
	if len(indexes) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%d)", FormatRanges(indexes), len(indexes))
}

// state returns the state of a replica of the group.
func (g ReplicaGroup) state(one sharding.Replica) string {
	switch {
	case one.Silent:
		return "does not run"
	case one.Leaving:
		return "leaving"
	case one.Paused:
		return "paused"
	case one.Count != g.Count:
		return fmt.Sprintf("waits: has another layout, of %d ranges", one.Count)
	case len(one.Ranges) == 0:
		return "waits for a range"
	}
	return "handles"
}

// age returns how long ago a Lease was renewed. Clocks may differ by some seconds.
func age(ago time.Duration, renewed time.Time) string {
	if renewed.IsZero() {
		return "never"
	}
	return max(ago, 0).Round(time.Second).String() + " ago"
}

// FormatRanges returns sorted indexes in a short form, such as "0-4,7".
func FormatRanges(indexes []int) string {
	var parts []string
	for i := 0; i < len(indexes); {
		end := i
		for end+1 < len(indexes) && indexes[end+1] == indexes[end]+1 {
			end++
		}
		part := strconv.Itoa(indexes[i])
		if end > i {
			part += "-" + strconv.Itoa(indexes[end])
		}
		parts, i = append(parts, part), end+1
	}
	return strings.Join(parts, ",")
}

// printable returns a text that other clients may have written.
func printable(text string) string { return cmp.Or(OneLine(text), "(none)") }

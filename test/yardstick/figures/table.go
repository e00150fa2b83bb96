package figures

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pair is a comparison: Of is divided by To.
type Pair struct{ Title, Numerator, Denominator string }

// noRatio is printed where a ratio does not exist.
const noRatio = "–"

// Print writes a table for each phase with one line per figure: a column of ratios for each pair whose contenders have
// run, and the medians of all contenders in order. Remarks follow, grouped by equal text.
func (b *Book) Print(w io.Writer, contenders []string, pairs []Pair) error {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool {
		return !slices.Contains(contenders, p.Numerator) || !slices.Contains(contenders, p.Denominator)
	})
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "medians of: %s\n\n", strings.Join(contenders, " · "))
	for _, p := range b.phases {
		rows := [][]string{append(append([]string{p.name}, titles(pairs)...), "medians")}
		for _, f := range p.figures {
			rows = append(rows, f.row(contenders, pairs))
		}
		align(&text, rows)
		p.remark(&text, contenders)
		text.WriteString("\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func titles(pairs []Pair) []string {
	var all []string
	for _, p := range pairs {
		all = append(all, p.Title)
	}
	return all
}

func (p phase) remark(text *strings.Builder, contenders []string) {
	var said []string
	for _, c := range contenders {
		remark := p.remarks[c]
		if remark == "" || slices.Contains(said, remark) {
			continue
		}
		said = append(said, remark)
		var same []string
		for _, other := range contenders {
			if p.remarks[other] == remark {
				same = append(same, other)
			}
		}
		_, _ = fmt.Fprintf(text, "  %s: %s\n", strings.Join(same, ", "), remark)
	}
}

func (f figure) row(contenders []string, pairs []Pair) []string {
	row := []string{"  " + f.name}
	for _, p := range pairs {
		ratio, ok := Ratio(f.values[p.Numerator], f.values[p.Denominator])
		if ok {
			row = append(row, ratio.String())
		} else {
			row = append(row, noRatio)
		}
	}
	var medians []string
	for _, c := range contenders {
		medians = append(medians, Number(Median(f.values[c])))
	}
	return append(row, strings.Join(medians, " · "))
}

// align writes rows with columns of equal width, except for the last column.
func align(text *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		text.WriteString(row[len(row)-1] + "\n")
	}
}

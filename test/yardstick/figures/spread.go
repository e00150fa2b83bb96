package figures

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Spread summarizes repeated measurements.
type Spread struct{ Median, Min, Max float64 }

// Median returns the middle value, or the mean of the middle two; not a number without values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the value below which the given share of the values lies, such as 0.99, interpolated between
// neighbours; not a number without values.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	place := share * float64(len(sorted)-1)
	below := int(place)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (sorted[above]-sorted[below])*(place-float64(below))
}

// Of returns the spread of values.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{Median: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	}
	return Spread{Median: Median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

// Ratio compares two contenders round by round. It leaves out rounds in which the second value is zero, and returns
// false if no round is left.
func Ratio(of, to []float64) (Spread, bool) {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		if to[i] != 0 {
			ratios = append(ratios, of[i]/to[i])
		}
	}
	return Of(ratios), len(ratios) > 0
}

// String returns the median, with minimum and maximum in parentheses if they differ from it: 1.12 (1.05–1.20).
func (s Spread) String() string {
	text := fmt.Sprintf("%.2f", s.Median)
	if least, greatest := fmt.Sprintf("%.2f", s.Min), fmt.Sprintf("%.2f", s.Max); least != text || greatest != text {
		text += fmt.Sprintf(" (%s–%s)", least, greatest)
	}
	return text
}

// Number formats a value with about three significant digits and never in scientific notation.
func Number(value float64) string {
	size := math.Abs(value)
	switch {
	case math.IsNaN(value):
		return "–"
	case value == math.Trunc(value), size >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
	return strconv.FormatFloat(value, 'f', 3, 64)
}

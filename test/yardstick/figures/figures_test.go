package figures_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/figures"
)

func TestQuantile(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []float64
		share  float64
		want   float64
	}{
		"none": {reason: "the quantile of no values is not a number", share: 0.5, want: math.NaN()},
		"one":  {reason: "a single value is every quantile", values: []float64{7}, share: 0.99, want: 7},
		"odd": {
			reason: "the order of the values does not matter", values: []float64{9, 1, 5}, share: 0.5, want: 5},
		"even": {reason: "the mean of the middle two", values: []float64{4, 1, 2, 9}, share: 0.5, want: 3},
		"interpolated": {
			reason: "a quantile is interpolated between neighbours", values: []float64{0, 10}, share: 0.99, want: 9.9},
		"last": {reason: "the quantile of 1 is the maximum", values: []float64{3, 1, 2}, share: 1, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := figures.Quantile(tc.values, tc.share)
			if !cmp.Equal(tc.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	cases := map[string]struct {
		reason string
		of, to []float64
		want   string
		none   bool
	}{
		"nothing": {reason: "a contender without values has no ratio", of: []float64{1}, none: true},
		"zeros": {
			reason: "zero divided by zero has no ratio", of: []float64{0}, to: []float64{0}, none: true,
		},
		"round by round": {
			reason: "a ratio is taken within each round, before the median",
			of:     []float64{2, 20, 3}, to: []float64{1, 10, 2}, want: "2.00 (1.50–2.00)",
		},
		"a zero among others": {
			reason: "a round with a zero divisor is left out",
			of:     []float64{2, 2}, to: []float64{0, 4}, want: "0.50",
		},
		"same": {
			reason: "equal ratios are printed without a range", of: []float64{1, 2}, to: []float64{1, 2}, want: "1.00"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := figures.Ratio(tc.of, tc.to)
			if ok == tc.none {
				t.Fatalf("%s: ratio exists: %v", tc.reason, ok)
			}
			if ok && got.String() != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  float64
		want   string
	}{
		"missing": {reason: "a missing value is not printed as zero", value: math.NaN(), want: "–"},
		"whole":   {reason: "a whole number has no decimals", value: 2, want: "2"},
		"large":   {reason: "a number from 100 on has no decimals", value: 512.34, want: "512"},
		"tens":    {reason: "a number from 10 on has one decimal", value: 51.26, want: "51.3"},
		"ones":    {reason: "a number from 0.1 on has two decimals", value: 1.6789, want: "1.68"},
		"small":   {reason: "a small number keeps three decimals", value: 0.0123, want: "0.012"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := figures.Number(tc.value); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestPrint shows that a pair without both contenders has no column, and that equal remarks are printed once.
func TestPrint(t *testing.T) {
	var b figures.Book
	for _, value := range []float64{2, 3, 4} {
		b.Note("create", "CPU ms/object", "ours", value)
		b.Note("create", "CPU ms/object", "byhand", 2)
		b.Note("create", "writes", "ours", 0)
		b.Note("create", "writes", "byhand", 0)
	}
	b.Remark("create", "ours", "patch 2")
	b.Remark("create", "byhand", "patch 2")
	var text strings.Builder
	pairs := []figures.Pair{
		{Title: "to by hand", Numerator: "ours", Denominator: "byhand"},
		{Title: "to Kopf", Numerator: "ours", Denominator: "kopf"},
	}
	if err := b.Print(&text, []string{"ours", "byhand"}, pairs); err != nil {
		t.Fatal(err)
	}
	want := `medians of: ours · byhand

create           to by hand        medians
  CPU ms/object  1.50 (1.00–2.00)  3 · 2
  writes         –                 0 · 0
  ours, byhand: patch 2

`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("the printed table: -want, +got\n%s", diff)
	}
}

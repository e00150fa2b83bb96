package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// figures returns how often changes were handled. A change that is soon followed by another one need not be handled.
func (a *callHistory) figures(last map[string]int64) string {
	made, calls := int64(0), map[string]int{}
	for _, changes := range last {
		made += changes + 1 // and the creation
	}
	for _, c := range a.calls {
		calls[fmt.Sprint(c.beginReport.Object, c.beginReport.Change)]++
	}
	times := map[int]int{}
	for _, count := range calls {
		times[count]++
	}
	endings := map[string]int{}
	for _, c := range a.calls {
		how := c.outcome
		if how == "" {
			how = "killed"
		}
		endings[how]++
	}
	happened := map[string]int{}
	for _, e := range a.events {
		if slices.Contains(disturbances, e.Kind) {
			happened[e.Kind]++
		}
	}
	return fmt.Sprintf("%d changes, %d not called for, calls per change: %s; calls ended: %s; happened: %s",
		made, made-int64(len(calls)), formatCounts(times), formatCounts(endings), formatCounts(happened))
}

// formatCounts prints a table of numbers in its order.
func formatCounts[K interface{ ~int | ~string }](of map[K]int) string {
	words := []string(nil)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%v: %d", key, of[key]))
	}
	return strings.Join(words, ", ")
}

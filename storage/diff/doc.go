// Package diff compares two JSON values and says what was added, changed and removed, and where.
//
// It stands apart because causes, field handlers, filters and the check of applied patches must all mean the same
// by "equal" and by "changed". It never modifies, copies or keeps its inputs, and knows nothing of Kubernetes: items
// share substructure with the values compared.
//
// JSON values are nil, bool, int64, float64, string, []any and map[string]any, as apimachinery's unstructured has
// them. Its neighbours: storage/diffbase makes the essences compared here; reconcilers/cause decides by the diff.
package diff

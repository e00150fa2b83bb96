// Package diff compares two JSON values, and returns the differences with their paths. [Compute] returns a [Diff],
// [Equal] compares two values, [ResolvePath] and [Diff.Reduce] select a field, and [DeepCopy] makes a deep copy.
//
// It is a package of its own because causes, field handlers, filters and the check of applied patches must share one
// definition of equality. It does not depend on Kubernetes. It never modifies its inputs; items share values with them.
//
// JSON values are nil, bool, int64, float64, string, []any and map[string]any, as in apimachinery's unstructured
// objects. Package storage/diffbase builds the essences that are compared; internal/cause decides by the diff.
package diff

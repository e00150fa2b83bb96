package diff

// Reduce narrows a diff down to what a handler of the field sees: only the differences at or below the field, with
// paths relative to it; nil if there are none. The root (a nil or empty field) gives the diff itself.
//
// Before and after are the two whole values that the diff was computed from, not the field's values. An item above the
// field, such as the whole spec being added, is replaced by the differences between the field's values inside them,
// where an absent or unreachable one is null. They are taken from there and not from the item, so that a diff whose
// items had their values withheld can be reduced too.
func (d Diff) Reduce(field Path, before, after any) Diff {
	if len(field) == 0 {
		return d
	}
	var reduced Diff
	for _, item := range d {
		switch {
		case item.Path.hasPrefix(field):
			item.Path = item.Path.from(len(field))
			reduced = append(reduced, item)
		case field.hasPrefix(item.Path):
			// A failed resolution gives nil, which is how a diff sees absence.
			beforeValue, _ := Resolve(before, field)
			afterValue, _ := Resolve(after, field)
			reduced = append(reduced, Compute(beforeValue, afterValue)...)
		}
	}
	return reduced
}

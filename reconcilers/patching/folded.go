package patching

import (
	"context"
	"fmt"
)

// folded sends one merge-patch to /status, if there is one, and one to the main resource.
func (x *exchange) folded(ctx context.Context, p Patch) error {
	base, rest := p.Merge, p.Merge
	if x.target.StatusSubresource {
		var status any
		if status, _, rest = splitMerge(p.Merge); status == nil {
			base = rest
		}
	}
	full, err := fold(x.target.Body, base, p.Transforms)
	if err != nil {
		return fmt.Errorf("patching %s: %w", describe(x.target.Body), err)
	}
	// What was made from the state of a list is only good for that state, whoever asks.
	fromState := x.writer.Guarded || len(p.Transforms) > 0
	byVersion := fromState && touchesList(x.target.Body, full)

	status, present, main := any(nil), false, full
	if x.target.StatusSubresource {
		status, present, main = splitMerge(full)
	}
	if present {
		// Its answer's version guards a list in the main patch only if it was guarded itself.
		payload := map[string]any{"status": status}
		if proceed, err := x.merge(ctx, true, payload, x.writer.Guarded || byVersion); !proceed {
			return err
		}
	}
	x.remaining.Merge = rest
	if len(main) == 0 {
		return nil
	}
	_, err = x.merge(ctx, false, main, byVersion && touchesList(x.target.Body, main))
	return err
}

// fold returns the one merge-patch that does what the merge-patch and then the transformations do to the body.
func fold(body, merge map[string]any, transforms []Transform) (map[string]any, error) {
	if len(transforms) == 0 {
		return merge, nil
	}
	merged := body
	if len(merge) > 0 {
		merged = applyMerge(body, merge)
	}
	after, err := applyTransforms(merged, transforms)
	if err != nil {
		return nil, err
	}
	change, _ := MergeDiff(merged, after)
	return compose(body, merge, change), nil
}

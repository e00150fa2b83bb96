package patching

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
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

// plain sends Kopf's requests: the merge-patch as it is, then JSON-patches of what the transformations make of the
// server's answer, with a test of the resource version.
func (x *exchange) plain(ctx context.Context, p Patch) error {
	rest := p.Merge
	if x.target.StatusSubresource {
		var status any
		if status, _, rest = splitMerge(p.Merge); status != nil {
			if proceed, err := x.merge(ctx, true, map[string]any{"status": status}, x.writer.Guarded); !proceed {
				return err
			}
		}
	}
	x.remaining.Merge = rest
	if len(rest) > 0 {
		byVersion := x.writer.Guarded && touchesList(x.target.Body, rest)
		if proceed, err := x.merge(ctx, false, rest, byVersion); !proceed {
			return err
		}
	}
	x.remaining.Merge = nil
	return x.transform(ctx, p.Transforms)
}

// transform runs all functions again after a conflict, even if one half of their changes had been written: they are
// idempotent, so that half makes no difference then.
func (x *exchange) transform(ctx context.Context, transforms []Transform) error {
	before := x.current
	after, err := applyTransforms(before, transforms)
	if err != nil {
		return fmt.Errorf("patching %s: %w", describe(x.target.Body), err)
	}
	main := operations(before, after)
	var status []jsonpatch.Operation
	if x.target.StatusSubresource {
		status, main = splitOperations(main)
	}
	if len(status) > 0 && x.result.StatusRefused == nil {
		if proceed, err := x.operate(ctx, true, status); !proceed {
			return err
		}
	}
	if len(main) > 0 {
		_, err = x.operate(ctx, false, main)
	}
	return err
}

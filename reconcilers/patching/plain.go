package patching

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
)

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

package orchestration

import (
	"context"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// ResolveAssignments resolves the selectors once, and runs nothing. It returns the reasons why selectors have no
// resource, or not all of them. An error means that the API server has not answered.
func ResolveAssignments(
	ctx context.Context, registrations []SelectedHandler, server discovery.Getter,
) (all []Assignment, unserved []string, err error) {
	o := New(registrations, server, nil, nil)
	inquiry := discovery.NewInquiry(server, o.writingSelectors)
	for _, selector := range o.selectors {
		now, err := inquiry.Resolve(ctx, selector, nil)
		switch {
		case err != nil && !discovery.IsUnserved(err):
			return nil, nil, fmt.Errorf("resolving %s: %w", selector, err)
		case err != nil:
			unserved = append(unserved, fmt.Sprintf("%s: %s", selector, err))
		case len(now.Served) == 0:
			unserved = append(unserved, fmt.Sprintf("%s: not served", selector))
		}
		o.resolutions[selector] = now
	}
	return o.resolveAssignments(), unserved, nil
}

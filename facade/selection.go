package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Selection is the objects of one kind that pass all filters. Its methods register handlers, or return a new Selection
// with one more filter.
//
// An object that no handler selects gets no finalizer, annotation or log line. One that is selected for the first time
// counts as created. See docs/selecting.md.
type Selection[T client.Object] struct {
	op       *Operator
	kind     *registry.SelectedKind
	codec    *codec.Codec[T]
	filters  []handlers.Filter
	criteria []handlers.Criterion // descriptions of the filters, one for each
	labels   []labels.Requirement // of the filters, as far as a label selector can express them

	filterRequirements []handlers.Requirement // of the filters on other fields
	redactedPaths      []diff.Path
	recheckNotifiers   []handlers.Notifier // indices that the filters read
}

// MatchingLabels selects objects by a label selector of kubectl, such as "tier=prod,!paused". It can reduce the watch:
// see docs/watching.md. Kopf: labels=.
func (s Selection[T]) MatchingLabels(selector string) Selection[T] {
	s, demanded := s.withSelectorFilter("MatchingLabels", "labels", selector, handlers.MatchLabels)
	// Requirements that webhook configurations cannot express by an objectSelector are added as expressions.
	s.labels = append(slices.Clip(s.labels), demanded...)
	return s.withRequirements("labels", slices.DeleteFunc(slices.Clone(demanded), fitsObjectSelector))
}

// MatchingAnnotations is [Selection.MatchingLabels] for annotations. Kopf: annotations=.
func (s Selection[T]) MatchingAnnotations(selector string) Selection[T] {
	s, requirements := s.withSelectorFilter("MatchingAnnotations", "annotations", selector, handlers.MatchAnnotations)
	return s.withRequirements("annotations", requirements)
}

// When selects objects for which the function returns true. The function must be fast and safe for concurrent use. If
// it panics, or the object does not decode into T, the object waits. Kopf: when=.
func (s Selection[T]) When(matches func(ctx context.Context, object T) bool) Selection[T] {
	if matches == nil {
		s.kind.AddError(errors.New("When: the function is nil: without a condition, leave When out"))
		return s
	}
	return s.withFilter(handlers.Criterion{Text: "When"}, func(ctx context.Context, c *cause.Cause) (bool, error) {
		object, err := s.codec.DecodeForFilter(c)
		if err != nil {
			return false, err
		}
		return matches(ctx, object), nil
	})
}

// RecheckOn evaluates the filters again when an index changes, for a [Selection.When] that reads it. See
// docs/watching.md. Kopf: none.
func (s Selection[T]) RecheckOn(indices ...anyIndex) Selection[T] {
	s.recheckNotifiers = slices.Clip(s.recheckNotifiers)
	for _, index := range indices {
		if index == nil || index.changeNotifier() == nil {
			s.kind.AddError(errors.New("RecheckOn: an index is nil: make it with kopf.NewIndex before"))
			continue
		}
		s.recheckNotifiers = append(s.recheckNotifiers, index.changeNotifier())
	}
	return s
}

// anyIndex is an index of any key and value types.
type anyIndex interface{ changeNotifier() handlers.Notifier }

// Redacted stores digests of these fields, as of all Secrets, in the last-handled configuration: c.Diff has no values,
// c.Old zero values. See docs/storages.md. Kopf: none.
func (s Selection[T]) Redacted(paths ...string) Selection[T] {
	for _, text := range paths {
		path, err := codec.ParsePath(text)
		if err == nil && s.codec != nil {
			err = s.codec.CheckPart(path)
		}
		if err != nil {
			s.kind.AddError(fmt.Errorf("Redacted: %w", err))
			continue
		}
		s.redactedPaths = append(slices.Clip(s.redactedPaths), path)
	}
	return s
}

// fitsObjectSelector reports whether an objectSelector of a webhook can express the requirement: Kubernetes label
// selectors in objects lack the operators > and <.
func fitsObjectSelector(r labels.Requirement) bool {
	return r.Operator() != selection.GreaterThan && r.Operator() != selection.LessThan
}

// withRequirements adds the requirements of a selector. They only reduce requests of the API server; the filter
// decides.
func (s Selection[T]) withRequirements(name string, all labels.Requirements) Selection[T] {
	s.filterRequirements = slices.Clip(s.filterRequirements)
	for _, one := range all {
		s.filterRequirements = append(s.filterRequirements, handlers.RequirementFromSelector(name, one))
	}
	return s
}

// withSelectorFilter narrows the selection by a selector over the field metadata.<of>, and returns the requirements of
// the selector.
func (s Selection[T]) withSelectorFilter(
	method, of, text string, filter func(labels.Selector) handlers.Filter,
) (Selection[T], labels.Requirements) {
	selector, err := labels.Parse(text)
	if err != nil {
		s.kind.AddError(fmt.Errorf(
			`%s(%q): invalid selector: %w; write it as for kubectl, such as "tier=prod,!paused"`, method, text, err,
		))
		return s, nil
	}
	demanded, _ := selector.Requirements()
	words := handlers.Criterion{Text: fmt.Sprintf("%s(%q)", method, text), Path: diff.Path{"metadata", of}}
	return s.withFilter(words, filter(selector)), demanded
}

// labelSelector returns the requirements of all filters on labels, as far as a selector can express them; nil without
// any.
func (s Selection[T]) labelSelector() labels.Selector {
	if len(s.labels) == 0 {
		return nil
	}
	return labels.NewSelector().Add(s.labels...)
}

// withFilter returns the selection with one more filter. It clips the slices before it appends: otherwise, two
// selections that are derived from one would write into the same array.
func (s Selection[T]) withFilter(words handlers.Criterion, filter handlers.Filter) Selection[T] {
	s.filters, s.criteria = append(slices.Clip(s.filters), filter), append(slices.Clip(s.criteria), words)
	return s
}

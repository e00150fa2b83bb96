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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Selection says which objects handlers are for: those of one kind, see [For] and [ForResource], that pass all filters.
// Its methods either narrow it down or register a handler.
//
// A selection is a value and never changes: every filter makes a new one, so several can be derived from one. Filters
// look at the object as it is at the moment. An object that no handler selects is left alone, without finalizer,
// annotations and log. One that begins to be selected, and was never handled by this operator, is created in the eyes
// of its handlers; one that was handled before has been updated, if it differs from then.
//
// A function value that is registered under one id for several selections is called once for an object that several of
// them match, with the options of the first one. Two functions under one id are an error of the set-up.
type Selection[T client.Object] struct {
	kind    *kind
	codec   *codec.Codec[T]
	filters []handlers.Filter
	words   []requirements.Criterion // of the filters, one for each
	labels  []labels.Requirement     // of the filters, as far as a selector can express them

	requires []requirements.Requirement // of the filters, beside the labels
	redacted []diff.Path
	rechecks []handlers.Notifier // what the filters read
}

// MatchingLabels narrows the selection down to objects whose labels match a selector, in the syntax of kubectl:
// "tier=prod,!paused", "tier in (prod,test)". A wrong one is an error of the set-up. Kopf: labels=.
//
// Of a kind whose handlers are all of events and indices, objects are not even watched that do not have the labels
// which all of these handlers demand: docs/watching.md has what that means. When has the API server send all of them.
func (s Selection[T]) MatchingLabels(selector string) Selection[T] {
	s, demanded := s.bySelector("MatchingLabels", "labels", selector, handlers.Labels)
	s.labels = append(slices.Clip(s.labels), demanded...)
	return s.requiring("labels", slices.DeleteFunc(slices.Clone(demanded), saidByObjectSelector))
}

// MatchingAnnotations narrows the selection down to objects whose annotations match a selector, in the same syntax. The
// syntax is that of labels, so values are of at most 63 letters, digits, "-", "_" and "."; for others, use When. Kopf:
// annotations=.
func (s Selection[T]) MatchingAnnotations(selector string) Selection[T] {
	s, requirements := s.bySelector("MatchingAnnotations", "annotations", selector, handlers.Annotations)
	return s.requiring("annotations", requirements)
}

// When narrows the selection down to objects for which the function is true. It is called often, for every handler and
// every event, maybe by several goroutines: it should be fast. The object is its own copy.
// A panic, or an object that does not decode into its type, keeps the object waiting. Kopf: when=.
func (s Selection[T]) When(matches func(ctx context.Context, object T) bool) Selection[T] {
	if matches == nil {
		s.kind.addError(errors.New("When: the function is nil: without a condition, leave When out"))
		return s
	}
	return s.narrowed(requirements.Criterion{Text: "When"}, func(ctx context.Context, c *cause.Cause) (bool, error) {
		object, err := s.codec.DecodeForFilter(c)
		if err != nil {
			return false, err
		}
		return matches(ctx, object), nil
	})
}

// RecheckOn has the objects looked at again when one of the indices changes: for filters, such as those of
// [Selection.When], that look into an index. Otherwise they are asked at the next event of the object only. Kopf: none.
//
//	wanted := secrets.RecheckOn(byOrder).When(func(_ context.Context, s *corev1.Secret) bool {
//		return byOrder.Has(s.Name)
//	})
//
// Handlers of changes, with their finalizer, daemons and timers then begin and end with the filters. A handler whose
// change is handled is not called again for that, nor is one before its delay is over. It has no effect for OnEvent and
// for index functions, which are for events alone.
//
// All objects of the kind are looked at, at most once a second, after everything that is more urgent. It costs no
// request as long as nothing follows. An index changes when an object has other keys or values than before: values that
// differ each time, such as a resourceVersion, have all objects looked at for each event.
func (s Selection[T]) RecheckOn(indices ...anyIndex) Selection[T] {
	s.rechecks = slices.Clip(s.rechecks)
	for _, index := range indices {
		if index == nil || index.notifier() == nil {
			s.kind.addError(errors.New("RecheckOn: an index is nil: make it with kopf.NewIndex before"))
			continue
		}
		s.rechecks = append(s.rechecks, index.notifier())
	}
	return s
}

// anyIndex is an index of whatever type.
type anyIndex interface{ notifier() handlers.Notifier }

// Redacted keeps the values of these fields, with all that is in them, out of what is remembered of the objects: only
// digests are. So is every v1 Secret as a whole, and an object of more than 100 KiB of JSON; with [AsKopf], which has
// to be read by Kopf, only what is given here and what does not fit otherwise.
//
// That such a value has changed is seen as ever, and handlers see the present one in c.Object. But in c.Diff, there are
// paths without values, and in c.Old, what has changed is zero. Keys of mappings stay readable; a list is one value,
// and a path through a list means the list. For who can try out values, see [PersistenceSettings].
//
// A path is of keys with dots between them; a key with dots stands in double quotes: `metadata.annotations."a.b/c"`,
// see [FieldPath]. One that T does not have is a mistake. As handlers of one kind share what is remembered, it holds
// for all of them. Fields may become redacted, and be no longer, without any object looking updated; what was
// remembered before is replaced when the object is handled next.
func (s Selection[T]) Redacted(paths ...string) Selection[T] {
	for _, text := range paths {
		path, err := codec.ParsePath(text)
		if err == nil && s.codec != nil {
			err = s.codec.CheckPart(path)
		}
		if err != nil {
			s.kind.addError(fmt.Errorf("Redacted: %w", err))
			continue
		}
		s.redacted = append(slices.Clip(s.redacted), path)
	}
	return s
}

// saidByObjectSelector tells whether the API server can check a requirement of labels without an expression.
func saidByObjectSelector(r labels.Requirement) bool {
	return r.Operator() != selection.GreaterThan && r.Operator() != selection.LessThan
}

// requiring remembers what a selector demands, beside the filter that decides.
func (s Selection[T]) requiring(name string, all labels.Requirements) Selection[T] {
	s.requires = slices.Clip(s.requires)
	for _, one := range all {
		s.requires = append(s.requires, requirements.FromSelector(name, one))
	}
	return s
}

func (s Selection[T]) bySelector(
	method, of, text string, filter func(labels.Selector) handlers.Filter,
) (Selection[T], labels.Requirements) {
	selector, err := parseSelector(method, text)
	if err != nil {
		s.kind.addError(err)
		return s, nil
	}
	demanded, _ := selector.Requirements()
	return s.narrowed(selectorWords(method, of, text), filter(selector)), demanded
}

func parseSelector(method, text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf(
			`%s(%q): invalid selector: %w; write it as for kubectl, such as "tier=prod,!paused"`, method, text, err,
		)
	}
	return selector, nil
}

// selectorWords are those of a filter by a selector over the "labels" or the "annotations".
func selectorWords(method, of, text string) requirements.Criterion {
	return requirements.Criterion{Text: fmt.Sprintf("%s(%q)", method, text), Path: diff.Path{"metadata", of}}
}

// selector is what the filters demand of the labels, as far as a selector can say it; nil is nothing.
func (s Selection[T]) selector() labels.Selector {
	if len(s.labels) == 0 {
		return nil
	}
	return labels.NewSelector().Add(s.labels...)
}

// narrowed clips before it appends: two selections derived from one must not write into the same array.
func (s Selection[T]) narrowed(words requirements.Criterion, filter handlers.Filter) Selection[T] {
	s.filters, s.words = append(slices.Clip(s.filters), filter), append(slices.Clip(s.words), words)
	return s
}

package hierarchies

import "k8s.io/apimachinery/pkg/runtime"

// settings are what the options have set.
type settings struct {
	forced, strict    bool
	nested            []string
	controller, block *bool
	scheme            *runtime.Scheme
	noLabels          bool
	warn              func(error)
}

type option func(s *settings)

func (option) label()     {}
func (option) naming()    {}
func (option) namespace() {}
func (option) adopt()     {}
func (option) reference() {}

func (o option) apply(s *settings) { o(s) }

// Option is an option of any of the functions.
type Option interface {
	apply(s *settings)
}

// LabelOption is an option of [Label]: [Forced], [Nested].
type LabelOption interface {
	Option
	label()
}

// NamingOption is an option of [HarmonizeNaming]: [Forced], [Strict].
type NamingOption interface {
	Option
	naming()
}

// NamespaceOption is an option of [AdjustNamespace]: [Forced].
type NamespaceOption interface {
	Option
	namespace()
}

// ReferenceOption is an option of owner references: [Controller], [BlockOwnerDeletion], [Scheme].
type ReferenceOption interface {
	Option
	reference()
}

// AdoptOption is an option of [Adopt]: [Forced], [Strict], [Nested], [Scheme], [NoLabels], [LikeKopf].
type AdoptOption interface {
	Option
	adopt()
}

// Forced replaces what children have already: names, namespaces, values of labels. Kopf: forced.
//
//nolint:interfacebloat // one for each of the functions
func Forced() interface {
	LabelOption
	NamingOption
	NamespaceOption
	AdoptOption
} {
	return option(func(s *settings) { s.forced = true })
}

// Strict gives children the very name of their owner; otherwise, the API server makes one that begins with it. Kopf:
// strict.
func Strict() interface {
	NamingOption
	AdoptOption
} {
	return option(func(s *settings) { s.strict = true })
}

// Nested labels what stands at these paths of children as well, where there is something, such as "spec.template" of a
// Deployment. A key with dots stands in double quotes. What stands there must have metadata, or be a mapping that gets
// some. It is an error if there are typed objects, and no object has the path: a list may have Jobs and Pods. Kopf:
// nested.
func Nested(paths ...string) interface {
	LabelOption
	AdoptOption
} {
	return option(func(s *settings) { s.nested = append(s.nested, paths...) })
}

// Controller says whether the owner is the one that manages the child; nil leaves the field out. Default: true. Kopf:
// controller.
func Controller(is *bool) ReferenceOption { return option(func(s *settings) { s.controller = is }) }

// BlockOwnerDeletion says whether a deletion of the owner in the foreground waits for the child; nil leaves the field
// out. Default: true. Kopf: block_owner_deletion.
func BlockOwnerDeletion(does *bool) ReferenceOption {
	return option(func(s *settings) { s.block = does })
}

// Scheme finds the kind of an owner that does not say it, as typed objects that clients have read do not. The handled
// object of a handler always does. Default: none.
func Scheme(scheme *runtime.Scheme) interface {
	ReferenceOption
	AdoptOption
} {
	return option(func(s *settings) { s.scheme = scheme })
}

// NoLabels has children inherit no labels of their owner.
func NoLabels() AdoptOption { return option(func(s *settings) { s.noLabels = true }) }

// LikeKopf has children adopted by owners that cannot own them, and inherit all labels, as Kopf does: what is wrong
// with that is passed to the function.
func LikeKopf(warn func(err error)) AdoptOption { return option(func(s *settings) { s.warn = warn }) }

func collect[O Option](options []O) settings {
	yes, also := true, true
	s := settings{controller: &yes, block: &also}
	for _, o := range options {
		o.apply(&s)
	}
	return s
}

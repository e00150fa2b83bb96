package hierarchies

import "k8s.io/apimachinery/pkg/runtime"

// settings holds the values of all options of one call.
type settings struct {
	isForced, isStrict               bool
	nestedPaths                      []string
	isController, blockOwnerDeletion *bool
	scheme                           *runtime.Scheme
	// noLabels is set by NoLabels, and warn by LikeKopf.
	noLabels bool
	warn     func(error)
}

// option implements all option interfaces. The return type of its constructor decides which functions accept it, so
// that a wrong option does not compile.
type option func(s *settings)

func (option) labelOption()     {}
func (option) namingOption()    {}
func (option) namespaceOption() {}
func (option) adoptOption()     {}
func (option) referenceOption() {}

func (o option) applyTo(s *settings) { o(s) }

// Option is an option of at least one function of this package.
type Option interface {
	applyTo(s *settings)
}

// LabelOption is an option of [Label]: [Forced], [Nested].
type LabelOption interface {
	Option
	labelOption()
}

// NamingOption is an option of [HarmonizeNaming]: [Forced], [Strict].
type NamingOption interface {
	Option
	namingOption()
}

// NamespaceOption is an option of [AdjustNamespace]: [Forced].
type NamespaceOption interface {
	Option
	namespaceOption()
}

// ReferenceOption is an option of owner references: [Controller], [BlockOwnerDeletion], [Scheme].
type ReferenceOption interface {
	Option
	referenceOption()
}

// AdoptOption is an option of [Adopt]: [Forced], [Strict], [Nested], [Scheme], [NoLabels], [LikeKopf].
type AdoptOption interface {
	Option
	adoptOption()
}

// Forced replaces existing names, namespaces and label values of children. Kopf: forced.
//
//nolint:interfacebloat // one for each of the functions
func Forced() interface {
	LabelOption
	NamingOption
	NamespaceOption
	AdoptOption
} {
	return option(func(s *settings) { s.isForced = true })
}

// Strict gives children exactly the name of their owner. By default, the API server generates a name that begins with
// it. Kopf: strict.
func Strict() interface {
	NamingOption
	AdoptOption
} {
	return option(func(s *settings) { s.isStrict = true })
}

// Nested also labels the objects at these paths inside of the children, such as "spec.template" of a Deployment, if
// they exist. A key with dots needs double quotes. The object must have metadata; a mapping gets it if it is missing.
// If there are typed objects, and none of the objects has the path, the call returns an error. Kopf: nested.
func Nested(paths ...string) interface {
	LabelOption
	AdoptOption
} {
	return option(func(s *settings) { s.nestedPaths = append(s.nestedPaths, paths...) })
}

// Controller sets whether the owner is the controller of the child; nil omits the field. Default: true. Kopf:
// controller.
func Controller(is *bool) ReferenceOption { return option(func(s *settings) { s.isController = is }) }

// BlockOwnerDeletion sets whether a foreground deletion of the owner waits for the child; nil omits the field. Default:
// true. Kopf: block_owner_deletion.
func BlockOwnerDeletion(does *bool) ReferenceOption {
	return option(func(s *settings) { s.blockOwnerDeletion = does })
}

// Scheme provides the kind of an owner with an empty TypeMeta, as in typed objects that a client has read. The handled
// object of a handler always has its kind. Default: none.
func Scheme(scheme *runtime.Scheme) interface {
	ReferenceOption
	AdoptOption
} {
	return option(func(s *settings) { s.scheme = scheme })
}

// NoLabels stops children from inheriting the labels of their owner.
func NoLabels() AdoptOption { return option(func(s *settings) { s.noLabels = true }) }

// LikeKopf follows Kopf: an owner adopts also the children that it cannot own, and children inherit all labels. The
// function gets the errors that Kopf does not report.
func LikeKopf(warn func(err error)) AdoptOption { return option(func(s *settings) { s.warn = warn }) }

// collectOptions applies the options to the defaults.
func collectOptions[O Option](options []O) settings {
	// Two variables, because the caller gets the pointers and may change their values.
	yes, also := true, true
	s := settings{isController: &yes, blockOwnerDeletion: &also}
	for _, o := range options {
		o.applyTo(&s)
	}
	return s
}

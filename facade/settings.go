package facade

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// kopfFinalizer is the default one of Kopf's operators. Kopf: persistence.finalizer.
const kopfFinalizer = keys.KopfPrefix + "/KopfFinalizerMarker"

// OperatorOption is a setting of a whole operator, for [New]. Of two settings of the same thing, the later one counts.
type OperatorOption interface{ operatorOption() }

type setting func(*settings) error

func (setting) operatorOption() {}

// settings are what the operator's options set.
type settings struct {
	prefix      string
	finalizer   string
	boundTo     string
	legacyKeys  bool
	diffbase    diffbase.Storage
	progress    progress.Storage
	compact     bool
	namespaces  []string
	workers     int
	backoff     time.Duration
	checkpoint  time.Duration
	lifecycle   HandlerLifecycle
	errorDelays []time.Duration // nil for the default ones
	apiBackoffs []time.Duration

	obeyRetryAfter bool
	daemons, ticks int
	cancelPolling  time.Duration

	schemes  []func(*runtime.Scheme) error
	storages storageOptions
	digests  reconcilers.Digests
}

func defaults(name string) settings {
	return settings{
		prefix:    name,
		finalizer: name + "/finalizer",
		boundTo:   name + "/" + keys.HandledUID,
		diffbase:  diffbase.Annotations{Prefix: name, WithoutV1: true},
		progress:  progress.Annotations{Prefix: name, WithoutV1: true},
		compact:   true,
		digests:   reconcilers.Digests{Limit: digestLimit, Secrets: true},
	}
}

// AsKopf makes the operator remember as Kopf's operators do by default: with the annotations of kopf.zalando.org, and
// the finalizer kopf.zalando.org/KopfFinalizerMarker. So it takes over the objects of a Kopf operator, with every
// handler where it was, and can hand them back. Ids must be those of the Kopf handlers: their function names, by
// default.
//
// There is one price: a copy of a handled object, annotations included, is taken for handled, as Kopf does.
func AsKopf() OperatorOption {
	return setting(func(s *settings) error {
		s.prefix, s.finalizer, s.boundTo, s.legacyKeys = keys.KopfPrefix, kopfFinalizer, "", true
		s.diffbase, s.progress, s.compact = diffbase.Annotations{}, progress.Smart{}, false
		s.digests.Limit, s.digests.Secrets = 0, false // Kopf cannot read digests
		return nil
	})
}

// InNamespaces restricts the operator to objects in these namespaces, by their exact names; objects outside of any
// namespace are handled nevertheless. Default: the whole cluster. The flags -n and -A of [Main] override it.
// Kopf: the argument namespaces of kopf.operator.
func InNamespaces(names ...string) OperatorOption {
	return setting(func(s *settings) (err error) {
		if len(names) == 0 {
			return errors.New("InNamespaces: no namespaces are given; leave the option out for the whole cluster")
		}
		s.namespaces, err = commandline.UniqueNamespaces(names)
		if err != nil {
			return fmt.Errorf("InNamespaces: %w", err)
		}
		return nil
	})
}

// AddToScheme makes Go types known, so that [For] finds their kinds: give it the AddToScheme of every API package that
// is handled or read through clients. The types of client-go are known without it. Under SetupWithManager the functions
// are applied to the manager's scheme.
func AddToScheme(add ...func(*runtime.Scheme) error) OperatorOption {
	return setting(func(s *settings) error {
		if slices.ContainsFunc(add, func(f func(*runtime.Scheme) error) bool { return f == nil }) {
			return errors.New("AddToScheme: a function is nil")
		}
		s.schemes = append(s.schemes, add...)
		return nil
	})
}

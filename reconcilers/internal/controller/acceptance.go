package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// refusalPause is the time for which no conditions are written to a kind that refused them. After it, the kind is
// checked again, because its schema or the RBAC rules may have changed.
const refusalPause = 10 * time.Minute

// acceptance records whether one kind accepts conditions in its status, and which types of conditions it gets. It is
// shared by the controllers of all namespaces.
type acceptance struct {
	server discovery.Getter
	log    logr.Logger

	// The lock guards the fields below. It is not held during requests.
	mu               sync.Mutex
	resource         discovery.Resource // the definition of the kind that was checked last
	types            conditions.Types   // the condition types that the definition has room for
	refusedAt        time.Time          // time of the last refusal; zero if the kind accepts conditions
	lastLoggedReason string             // the reason that was logged last; empty if none was
	lastLoggedAt     time.Time          // time of that log line
}

var _ changes.Acceptance = (*acceptance)(nil)

// builtInWithConditions holds the built-in kinds whose conditions are open to any controller. The conditions of other
// built-in kinds have different fields, or drive a controller of Kubernetes, such as Ready of a Pod.
var builtInWithConditions = map[schema.GroupKind]bool{
	{Kind: "Service"}: true, {Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

// conditionsFor returns the settings for the conditions of one kind, or nil if none of its handlers reports conditions.
func (d *Dependencies) conditionsFor(r discovery.Resource, reporters []*adapters.HandlerChain) *changes.Conditions {
	if len(reporters) == 0 {
		return nil
	}
	return &changes.Conditions{Reporters: reporters, Acceptance: d.acceptanceOf(r)}
}

// acceptanceOf returns the acceptance of the kind, and creates it at the first call. It outlives the controllers, so
// that a refusal is remembered when a controller restarts.
func (d *Dependencies) acceptanceOf(r discovery.Resource) *acceptance {
	fresh := &acceptance{
		server: d.Server, log: logging.OfKind(d.Log, r.GroupVersionKind), resource: r,
		types: conditionTypesOf(d.Settings, r),
	}
	known, _ := d.acceptances.LoadOrStore(r.GroupVersionKind, fresh)
	found, _ := known.(*acceptance)
	return found
}

// conditionTypesOf returns the condition types of the kind. For a built-in kind, it excludes status.observedGeneration,
// which only the controllers of Kubernetes may set.
func conditionTypesOf(s kind.Settings, r discovery.Resource) conditions.Types {
	types := s.Conditions
	types.WritesObservedGeneration = types.WritesObservedGeneration && !r.IsBuiltIn()
	return types
}

// inspectConditions checks whether a discovered kind accepts conditions. It does nothing if no handler reports
// conditions.
func (d *Dependencies) inspectConditions(ctx context.Context, r discovery.Resource, own []*adapters.HandlerChain) {
	if len(adapters.ByFamily(own).Condition) == 0 {
		return
	}
	a := d.acceptanceOf(r)
	// The definition may be another one than before: replace it, and check again.
	a.mu.Lock()
	if !a.resource.IsInterchangeable(r) {
		a.lastLoggedReason = "" // the CRD has changed: log a missing field again, even the same one
	}
	a.resource, a.types = r, conditionTypesOf(d.Settings, r)
	a.mu.Unlock()
	a.checkConditionSupport(ctx)
}

// Types returns the condition types to write. It returns false if the kind does not accept conditions now. After
// refusalPause it checks the kind again.
func (a *acceptance) Types(ctx context.Context) (conditions.Types, bool) {
	a.mu.Lock()
	types, refused := a.types, !a.refusedAt.IsZero()
	again := refused && time.Since(a.refusedAt) > refusalPause
	if again {
		a.refusedAt = time.Now() // other goroutines see the kind as refused meanwhile, and do not start a second check
	}
	a.mu.Unlock()
	if !again {
		return types, !refused
	}
	// The check sends requests, so the lock is not held.
	a.checkConditionSupport(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.types, a.refusedAt.IsZero()
}

// checkConditionSupport finds out from the discovered resource and its schema whether the kind accepts conditions. A
// schema that cannot be read is not an error: the kind then counts as accepting, and the answers to the writes decide.
func (a *acceptance) checkConditionSupport(ctx context.Context) {
	a.mu.Lock()
	resource, types := a.resource, a.types
	a.mu.Unlock()
	// First the checks that need no request, then the schema of a CRD.
	why, remedy := conditionMisfit(resource)
	if why == "" && a.server != nil && !resource.IsBuiltIn() {
		schema, resolve, err := discovery.SchemaOf(ctx, a.server, resource.GroupVersionKind)
		if err == nil && schema != nil {
			var observed bool
			why, observed = conditions.SchemaMisfit(schema, resolve)
			types.WritesObservedGeneration = types.WritesObservedGeneration && observed
			remedy = remedyForSchema
		}
	}
	// The result replaces earlier refusals: a corrected CRD gets conditions again.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.types, a.refusedAt = types, time.Time{}
	if why != "" {
		a.refusedAt = time.Now()
		a.logRefusalOnce(why, remedy)
	}
}

// The remedies are a part of the log line, so that users need not search for them.
const (
	remedyForSchema = "add status.conditions to the schema of the CRD: " + logging.ManualConditionsInSchema
	remedyForRights = "solve the problem that the API server reports, such as by a rule for the status of the " +
		"resource in the RBAC of the operator"
	remedyForObject = "solve the problem that the API server reports for this object"
)

// conditionMisfit returns why the kind cannot have conditions, and the remedy, without reading its schema. Both are
// empty if nothing speaks against conditions.
func conditionMisfit(r discovery.Resource) (why, remedy string) {
	switch {
	case r.IsBuiltIn() && !builtInWithConditions[r.GroupKind()]:
		return "its conditions belong to the controllers of Kubernetes", "leave Conditions out for the kind"
	case !r.HasStatus():
		return "its status is not a subresource", fmt.Sprintf(
			"add \"subresources: {status: {}}\" to version %s of the CRD %s", r.Version, r.GroupResource())
	default:
		return "", ""
	}
}

// ReportRefused records that the API server rejected conditions. A lasting refusal concerns the kind, and stops all
// writes of conditions to it for refusalPause. Any other refusal concerns one object, and is only logged.
func (a *acceptance) ReportRefused(_ context.Context, why error, lasting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !lasting {
		// Many objects can be refused for different reasons: log at most one of them per pause.
		if time.Since(a.lastLoggedAt) > refusalPause {
			a.logRefusalOnce(why.Error(), remedyForObject)
		}
		return
	}
	// A lasting refusal has two usual reasons: missing permissions, or a schema without the field.
	a.refusedAt = time.Now()
	if apierrors.IsForbidden(why) {
		a.logRefusalOnce(why.Error(), remedyForRights)
		return
	}
	a.logRefusalOnce(why.Error(), remedyForSchema)
}

// logRefusalOnce logs why conditions are not written. It does not repeat the last reason. The caller holds the lock.
func (a *acceptance) logRefusalOnce(why, remedy string) {
	if a.lastLoggedReason == why {
		return
	}
	a.lastLoggedReason, a.lastLoggedAt = why, time.Now()
	logging.Warn(a.log, "Cannot write conditions to the status of a kind", "resource",
		a.resource.GroupVersionKind.String(), "why", why, "remedy", remedy)
}

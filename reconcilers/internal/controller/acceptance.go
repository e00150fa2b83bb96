package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/manual"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// refusalPause is how long nothing is written to a kind that does not take conditions, before that is found out anew:
// its schema may have changed, or the rights.
const refusalPause = 10 * time.Minute

// acceptance is how one kind takes conditions.
type acceptance struct {
	server discovery.Getter
	log    logr.Logger

	mu       sync.Mutex
	resource discovery.Resource
	types    conditions.Types
	refused  time.Time // when it was found that the kind does not take any; zero if it does
	said     string    // why not, as the log says
	since    time.Time // when the log said so
}

var _ changes.Acceptance = (*acceptance)(nil)

// builtIn are the groups of Kubernetes' own kinds. Beside these, domains below k8s.io are those of CRDs.
var builtIn = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true,
	"storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// builtInWithConditions are those of them whose conditions are meant for any controller. Those of others have other
// fields, or such as Ready of a Pod belong to a controller that decides by them.
var builtInWithConditions = map[schema.GroupKind]bool{
	{Kind: "Service"}: true, {Group: "policy", Kind: "PodDisruptionBudget"}: true,
}

// conditionsOf is what objects of the kind tell of their handlers; nil if no handler reports.
func (d *Dependencies) conditionsOf(r discovery.Resource, reporters []*adapters.Handler) *changes.Conditions {
	if len(reporters) == 0 {
		return nil
	}
	return &changes.Conditions{Reporters: reporters, Acceptance: d.acceptanceOf(r)}
}

func (d *Dependencies) acceptanceOf(r discovery.Resource) *acceptance {
	fresh := &acceptance{
		server: d.Server, log: logging.OfKind(d.Log, r.GroupVersionKind), resource: r, types: typesOf(d.Settings, r),
	}
	known, _ := d.acceptances.LoadOrStore(r.GroupVersionKind, fresh)
	found, _ := known.(*acceptance)
	return found
}

// typesOf are those for the kind. What a built-in kind has observed is for its own controllers to say.
func typesOf(s settings.Settings, r discovery.Resource) conditions.Types {
	types := s.Conditions
	types.WholeStatus = types.WholeStatus && !builtIn[r.Group]
	return types
}

// inspectConditions finds out whether a kind that was found takes conditions, if its objects are to have some.
func (d *Dependencies) inspectConditions(ctx context.Context, r discovery.Resource, own []*adapters.Handler) {
	if len(adapters.ByFamily(own).Reporting) == 0 {
		return
	}
	a := d.acceptanceOf(r)
	a.mu.Lock()
	if !a.resource.Interchangeable(r) {
		a.said = "" // another definition: what is missing in it is told, even if it was before
	}
	a.resource, a.types = r, typesOf(d.Settings, r)
	a.mu.Unlock()
	a.inspect(ctx)
}

// Types are those to be written; false if the kind has no place for conditions.
func (a *acceptance) Types(ctx context.Context) (conditions.Types, bool) {
	a.mu.Lock()
	types, refused := a.types, !a.refused.IsZero()
	again := refused && time.Since(a.refused) > refusalPause
	if again {
		a.refused = time.Now() // nobody else asks meanwhile
	}
	a.mu.Unlock()
	if !again {
		return types, !refused
	}
	a.inspect(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.types, a.refused.IsZero()
}

// inspect asks the API server what the kind is like. If that is not known, the answers to writes will tell.
func (a *acceptance) inspect(ctx context.Context) {
	a.mu.Lock()
	resource, types := a.resource, a.types
	a.mu.Unlock()
	why, remedy := misfit(resource)
	if why == "" && a.server != nil && !builtIn[resource.Group] {
		schema, resolve, err := discovery.SchemaOf(ctx, a.server, resource.GroupVersionKind)
		if err == nil && schema != nil {
			var observed bool
			why, observed = conditions.Misfit(schema, resolve)
			types.WholeStatus = types.WholeStatus && observed
			remedy = remedyForSchema
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.types, a.refused = types, time.Time{}
	if why != "" {
		a.refused = time.Now()
		a.say(why, remedy)
	}
}

const (
	remedyForSchema = "add status.conditions to the schema of the CRD: " + manual.ConditionsInSchema
	remedyForRights = "solve the problem that the API server reports, such as by a rule for the status of the resource in " +
		"the RBAC of the operator"
	remedyForObject = "solve the problem that the API server reports for this object"
)

// misfit tells why the kind takes no conditions, as far as this is known without its schema.
func misfit(r discovery.Resource) (why, remedy string) {
	switch {
	case builtIn[r.Group] && !builtInWithConditions[r.GroupKind()]:
		return "its conditions belong to the controllers of Kubernetes", "leave Conditions out for the kind"
	case !r.HasStatus():
		return "its status is not a subresource", fmt.Sprintf(
			"add \"subresources: {status: {}}\" to version %s of the CRD %s", r.Version, r.GroupResource())
	default:
		return "", ""
	}
}

// Refused is told that the API server has not taken conditions.
func (a *acceptance) Refused(_ context.Context, why error, lasting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !lasting {
		if time.Since(a.since) > refusalPause {
			a.say(why.Error(), remedyForObject)
		}
		return
	}
	a.refused = time.Now()
	if apierrors.IsForbidden(why) {
		a.say(why.Error(), remedyForRights)
		return
	}
	a.say(why.Error(), remedyForSchema)
}

// say logs why there are no conditions, once for each reason.
func (a *acceptance) say(why, remedy string) {
	if a.said == why {
		return
	}
	a.said, a.since = why, time.Now()
	logging.Warn(a.log, "Cannot write conditions to the status of a kind", "resource",
		a.resource.GroupVersionKind.String(), "why", why, "remedy", remedy)
}

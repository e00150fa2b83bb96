package clusterops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// FreezeOrder is a request to the operators that share peering objects.
type FreezeOrder struct {
	// Peering is the name of the peering objects.
	Peering string
	// Namespaces are the namespaces of the objects. Without any, the cluster-scoped object is meant.
	Namespaces namespaces.Patterns
	// Identity is the key of the record in the objects.
	Identity string
	// Record is the record to write. If it has no lifetime, the record with this identity is removed. It is not
	// renewed: without a resume, it ends with its lifetime.
	Record peering.PeerRecord
}

// CarryOut writes the record into all selected objects, or removes it there.
//
// # Errors
//
// The error names each namespace where the request has failed; the other namespaces are still processed. A namespace
// that matches only a pattern needs no peering object, but at least one of all namespaces must have it. A namespace
// that is given by name must have it.
func (o FreezeOrder) CarryOut(ctx context.Context, config *rest.Config) error {
	api, err := Connect(config)
	if err != nil {
		return err
	}
	// Without namespaces, the order is for the cluster-scoped kind.
	plural, kinds, err := api.PeeringKinds(ctx, len(o.Namespaces) == 0)
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("this cluster has no %s, neither in %s: so no operator looks there. Their CRDs are in "+
			"config/crd/peerings.yaml", plural, strings.Join(peeringGroups, " nor in "))
	}
	named, matching, err := api.selectTargets(ctx, o.Namespaces)
	if err != nil {
		return err
	}
	var problems []error
	done := 0
	for i, namespace := range slices.Concat(named, matching) {
		found, err := o.carryOutIn(ctx, api, kinds, namespace)
		switch {
		case err != nil:
			problems = append(problems, err)
		// The user expects a peering object there.
		case !found && i < len(named):
			problems = append(problems, fmt.Errorf("there is no %s, so no operator looks there: name one with -P "+
				"(--peering), or create it", o.describe(kinds[0].Kind, namespace)))
		case found:
			done++
		}
	}
	// Without any object, the command would have no effect, and the user would not notice.
	if done == 0 && len(problems) == 0 {
		return fmt.Errorf("no namespace of %s has a %s %q, so no operator was notified",
			strings.Join(o.Namespaces.Texts(), " "), kinds[0].Kind, o.Peering)
	}
	return errors.Join(problems...)
}

// selectTargets returns the namespaces that are given by name, and those that match only a pattern. Without patterns,
// the whole cluster counts as named, so the absence of its object is an error.
func (c *Cluster) selectTargets(
	ctx context.Context, meant namespaces.Patterns,
) (named, matching []string, err error) {
	if len(meant) == 0 {
		return []string{""}, nil, nil
	}
	var patterns namespaces.Patterns
	for _, one := range meant {
		// A plain name needs no list request, and so no permission to list namespaces.
		if names, plain := (namespaces.Patterns{one}).PlainNames(); plain {
			named = append(named, names...)
			continue
		}
		patterns = append(patterns, one)
	}
	if len(patterns) == 0 {
		return named, nil, nil
	}
	switch matching, err = c.MatchingNamespaces(ctx, patterns); {
	// The plain names can still be served without this permission.
	case apierrors.IsForbidden(err) && len(named) > 0:
		logging.Warn(logf.FromContext(ctx), "Patterns of namespaces are left out: namespaces may not be listed",
			"patterns", fmt.Sprint(patterns), "error", err.Error())
	case err != nil:
		return nil, nil, err
	}
	matching = slices.DeleteFunc(matching, func(name string) bool { return slices.Contains(named, name) })
	// A wrong pattern would otherwise look like success.
	if len(named)+len(matching) == 0 {
		return nil, nil, fmt.Errorf("no namespace matches the patterns %v", patterns)
	}
	return named, matching, nil
}

// describe names the peering object of a kind and a namespace for messages.
func (o FreezeOrder) describe(kind, namespace string) string {
	text := fmt.Sprintf("%s %q", kind, o.Peering)
	if namespace != "" {
		text += fmt.Sprintf(" in the namespace %q", namespace)
	}
	return text
}

// carryOutIn processes one namespace, for each group that has the kind. Found is false if no group has the object.
func (o FreezeOrder) carryOutIn(
	ctx context.Context, api *Cluster, kinds []discovery.Resource, namespace string,
) (found bool, err error) {
	// A problem in one namespace must not prevent the others from being processed.
	var problems []error
	for _, kind := range kinds {
		object, err := api.PeeringObject(kind, namespace, o.Peering)
		if err == nil {
			err = o.applyTo(ctx, object)
		}
		switch {
		// The object may exist in the other group.
		case apierrors.IsNotFound(err):
		// The API server's message names the object and the user already.
		case apierrors.IsForbidden(err):
			problems = append(problems,
				fmt.Errorf("%w: grant the permission, as config/rbac/peering_role.yaml does for operators", err))
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %w", o.describe(kind.GroupResource().String(), namespace), err))
		default:
			found = true
		}
	}
	return found, errors.Join(problems...)
}

// applyTo writes or removes the record in one object, and logs the effect.
func (o FreezeOrder) applyTo(ctx context.Context, object PeeringObject) error {
	log := logging.OfObject(
		logging.OfKind(logf.FromContext(ctx), object.Kind),
		types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, "",
	)
	if o.Record.Lifetime <= 0 {
		return o.removeFrom(ctx, object, log)
	}
	record := o.Record
	// The lifetime counts from this time.
	record.LastSeen = time.Now()
	others, err := object.WritePause(ctx, o.Identity, record)
	if err != nil {
		return err
	}
	// The own record is not a peer.
	delete(others, o.Identity)
	logPeers(log, o.Identity, record, others)
	return nil
}

// logPeers logs which peers pause. Peers of a higher priority do not pause; they are listed in a warning.
func logPeers(log logr.Logger, identity string, record peering.PeerRecord, others map[string]peering.PeerRecord) {
	var pausing, above []string
	for _, other := range slices.Sorted(maps.Keys(others)) {
		// Peers of the same priority pause as well.
		if others[other].Priority > record.Priority {
			above = append(above, other)
		} else {
			pausing = append(pausing, other)
		}
	}
	log.Info("Wrote the record that pauses operators", "identity", identity, "priority", record.Priority,
		"until", record.ExpiresAt().UTC().Format(time.RFC3339), "pausing", pausing)
	if len(above) > 0 {
		logging.Warn(log, "Operators of higher priorities do not pause", "priority", record.Priority, "peers", above)
	}
}

// removeFrom removes the record. It logs a warning if there is no such record, because the identity may be wrong.
func (o FreezeOrder) removeFrom(ctx context.Context, object PeeringObject, log logr.Logger) error {
	before, err := object.Read(ctx)
	if err != nil && !apierrors.IsForbidden(err) { // writing can be allowed without reading
		return err
	}
	// The record is looked up before it is removed, to notice a wrong identity.
	status, _ := before["status"].(map[string]any)
	_, known := status[o.Identity]
	// An empty record removes the entry.
	after, writing := object.WriteRecord(ctx, o.Identity, peering.PeerRecord{})
	if writing != nil {
		return writing
	}
	// The remaining peers show who may still keep operators paused.
	left := slices.Sorted(maps.Keys(validRecords(after)))
	// The warning needs a successful read: without one, the record may have existed.
	if err == nil && !known {
		logging.Warn(log, "There is no record to be removed; another --id has written those that are left",
			"identity", o.Identity, "peers", left)
		return nil
	}
	log.Info("Removed the record that paused operators", "identity", o.Identity, "peers", left)
	return nil
}

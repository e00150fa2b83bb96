package kopf

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/permissions"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// generateManifests returns the manifests of the operator, for the command manifests. It calls cluster for the
// connection only if a kind is neither in Kubernetes itself nor among the CRDs of the user.
func (op *Operator) generateManifests(
	ctx context.Context, given serving.RunFlags, o manifests.Options, cluster func() (*rest.Config, error),
) (files []manifests.File, hints []string, err error) {
	runnableOperator{op}.Apply(given)
	needed, of, printed, err := op.describeForManifests(given, o)
	if err != nil {
		return nil, nil, err
	}
	var crds []manifests.CRD
	if o.CRDs != "" {
		if crds, err = manifests.ReadCRDs(o.CRDs); err != nil {
			return nil, nil, fmt.Errorf("--crds: %w", err)
		}
	}
	var resources []discovery.Resource
	if of.Needs, resources, err = manifests.Resolve(needed, crds, func() ([]discovery.Resource, error) {
		return listClusterResources(ctx, cluster)
	}); err != nil {
		return nil, nil, err
	}
	if of.Configurations, hints, err = printed.ConfigurationObjects(resources); err != nil {
		return nil, nil, err
	}
	if o.CertManager || !o.Includes(manifests.Webhooks) {
		hints = nil // they are about the bundle, which cert-manager adds
	}
	files, more, err := manifests.Generate(of, o, crds)
	if hints = append(hints, more...); err != nil || o.Recording == "" {
		return files, hints, err
	}
	if more, err = manifests.ProposeRules(o.Recording, of); err != nil {
		return nil, nil, fmt.Errorf("--from-recording: %w", err)
	}
	return files, append(hints, more...), nil
}

// describeForManifests returns the operator as its permissions, its manifests and its webhook configurations need it.
func (op *Operator) describeForManifests(
	given serving.RunFlags, o manifests.Options,
) (needed permissions.PermissionInput, of manifests.ManifestInput, printed reviews.PrintedReviews, err error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return needed, of, printed, err
	}
	// What run would reject must not be deployed.
	if o.Includes(manifests.Deployment) {
		if err := op.reviews.CheckServer(plan, true); err != nil {
			return needed, of, printed, op.settingsMistakes(err).JoinedError(op.name)
		}
	}
	if printed, err = op.reviews.PrintConfigurations(plan, o.Webhooks); err != nil {
		return needed, of, printed, err
	}
	s := op.settings
	needed = op.permissionsOf(plan)
	of = manifests.ManifestInput{
		Name: op.name, Namespaces: needed.Namespaces, Args: scopeArguments(given, needed.Namespaces.Texts()),
		PeeringClusterwide: needed.PeeringClusterwide,
		ExitTime:           s.exitTime(),
		Reviews:            len(reviews.WatchingHandlers(plan)) < len(plan),
		Service:            printed.Service, ServicePort: printed.ServicePort,
		WebhookPort:    cmp.Or(s.values.Admission.Port, webhook.DefaultPort),
		CertificateDir: s.values.Admission.CertificateDir,
	}
	// An operator looks for a peering object that it does not require, too, and may act without it.
	if !needed.PeeringOptional {
		of.Peering = needed.Peering
	}
	of.Shards = needed.Shards
	of.Coordinated = needed.LeaderElection || of.Shards > 0 || of.Peering != ""
	of.Args, of.MetricsSecure = append(of.Args, needsArguments(given)...), needed.MetricsSecure
	return needed, of, printed, nil
}

// needsArguments returns the flags that change what the operator needs, except those with their defaults.
func needsArguments(given serving.RunFlags) (args []string) {
	if name := given.Peering.Name; name != "" {
		args = append(args, "--peering="+name)
	}
	if mode := given.Election.Mode; mode != serving.ElectAuto {
		args = append(args, "--leader-elect="+mode)
	}
	if id := given.Election.ID; id != "" {
		args = append(args, "--leader-elect-id="+id)
	}
	if shards := given.Election.Shards; shards > 0 {
		args = append(args, fmt.Sprintf("--shards=%d", shards))
	}
	if given.Metrics.Secure {
		args = append(args, "--metrics-secure")
	}
	return args
}

// scopeArguments returns the flags that select the served namespaces as the settings and the flags of this command do.
func scopeArguments(given serving.RunFlags, served []string) (args []string) {
	switch {
	case len(served) == 0:
		return []string{"--all-namespaces"}
	case given.HasScope:
		for _, one := range served {
			args = append(args, "--namespace="+one)
		}
	}
	return args // namespaces of the settings are in the program
}

// exitTime returns how long the exit of a program takes at most: see docs/activities-reference.md.
func (s resolvedSettings) exitTime() time.Duration {
	cleanup, limit := s.values.CleanupTimeout, s.values.UltimateExitingTimeout
	if cleanup == Never {
		cleanup = max(limit, serving.DefaultExitLimit)
	}
	total := max(0, s.values.Queueing.ExitTimeout) + serving.AdditionalExitTime + cleanup + activities.GracePeriod
	if limit != Never {
		total = min(total, limit)
	}
	return total
}

// listClusterResources returns the resources of the cluster. A group that does not answer is an error: a kind of it
// would be reported as missing.
func listClusterResources(
	ctx context.Context, cluster func() (*rest.Config, error),
) ([]discovery.Resource, error) {
	config, err := cluster()
	if err != nil {
		return nil, err
	}
	server, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the cluster: %w", err)
	}
	return discovery.ListResources(ctx, discovery.TimeoutGetter{Getter: discovery.API{Client: server.RESTClient()}})
}

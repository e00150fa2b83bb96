package kopf

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// planChanges predicts what the operator would do when it starts, for the command plan.
func (op *Operator) planChanges(ctx context.Context, given commandline.PlanRequest) (commandline.PlanReport, error) {
	options, err := op.plannedOptions(given)
	if err != nil {
		return nil, err
	}
	var source reconcilers.PreviewSource
	if given.Load != "" {
		source, err = planning.LoadDump(given.Load)
	} else {
		source, err = clusterops.Connect(given.Cluster)
	}
	if err != nil {
		return nil, err
	}
	return planning.Make(ctx, options, source)
}

// plannedOptions returns the options of the engine, as an operator with these flags would start with them. It calls
// functions of the user, such as AddToScheme, and holds the lock meanwhile.
func (op *Operator) plannedOptions(given commandline.PlanRequest) (reconcilers.Options, error) {
	runnableOperator{op}.Apply(given.Flags)
	op.registry.Lock()
	defer op.registry.Unlock()
	if given.FromKopf {
		op.userSettings.Persistence = AsKopf().Persistence
	}
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return reconcilers.Options{}, err
	}
	options := op.engineOptions(plan)
	kept := op.settings.values.Persistence
	options.Dependents = &children.Keeper{Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer}
	return options, nil
}

// storedThings describes what the operator stores in a cluster, for the command drain.
func (op *Operator) storedThings() (draining.StoredState, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return draining.StoredState{}, err
	}
	own := op.settings.values
	kept := own.Persistence
	all := draining.StoredState{
		Name: op.name, Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer,
		Shared:   kept.KopfFormats || kept.AnnotationPrefix == keys.KopfPrefix,
		Diffbase: kept.DiffbaseStorage, Progress: kept.ProgressStorage,
		Webhooks: own.Admission.Managed, KopfWebhooks: kept.KopfFormats,
		Peering: draining.PeeringPlace{
			Name: own.Peering.Name, Clusterwide: own.Peering.Clusterwide, Standalone: own.Peering.Standalone,
			Identity: own.Peering.Identity,
		},
		Patterns: op.settings.scope.ServedPatterns(),
	}
	ids := map[discovery.Selector][]string{}
	for _, one := range reviews.WatchingHandlers(plan) {
		// These handlers are for the kinds of children, or for kinds that have other handlers as well.
		if !one.Handler.FollowsEvents() {
			all.Children = append(all.Children, one.Selector)
			continue
		}
		if _, known := ids[one.Selector]; !known {
			all.Kinds, ids[one.Selector] = append(all.Kinds, draining.StoredKind{Selector: one.Selector}), nil
		}
		if one.Handler.StoresUnderID() {
			ids[one.Selector] = slices.Concat(ids[one.Selector], []string{one.Handler.ID}, one.Handler.FormerIDs)
		}
	}
	for i := range all.Kinds {
		all.Kinds[i].IDs = ids[all.Kinds[i].Selector]
	}
	return all, nil
}

// checkCluster makes the checks of the command preflight, with the permissions of the configuration. The namespace is
// that of the operator's pods; empty if it is not known.
func (op *Operator) checkCluster(
	ctx context.Context, given serving.RunFlags, config *rest.Config, namespace string,
) (clusterneeds.CheckReport, error) {
	runnableOperator{op}.Apply(given)
	described, err := op.describeForPreflight(namespace)
	if err != nil {
		return clusterneeds.CheckReport{}, err
	}
	server, err := clusterneeds.Connect(config, nil)
	if err != nil {
		return clusterneeds.CheckReport{}, err
	}
	return clusterneeds.Run(ctx, described, server)
}

// describeForPreflight returns the operator as its checks need it, by a plan of the current settings.
func (op *Operator) describeForPreflight(namespace string) (clusterneeds.CheckInput, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return clusterneeds.CheckInput{}, err
	}
	return op.preflightOf(plan, namespace)
}

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
) (needed clusterneeds.PermissionInput, of manifests.ManifestInput, printed reviews.PrintedReviews, err error) {
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

package kopf

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// Activity is one call of a handler of OnStartup, OnCleanup, OnLogin or OnProbe. The logger is log.FromContext(ctx).
type Activity struct {
	// ID is the id of the handler.
	ID string
	// Retry counts earlier calls in the same activity. Kopf: retry.
	Retry int
	// Started is when the activity began. Kopf: started; runtime is time.Since(a.Started).
	Started time.Time
	// Settings can be changed in OnStartup. Kopf: settings.
	Settings *Settings
	// Client acts as the operator. Under [Main] and [Operator.Run], its first use logs in. It is nil in OnLogin.
	Client client.Client
	// APIReader has no cache. It is nil in OnLogin.
	APIReader client.Reader

	cluster serving.ClusterConfig // as the flags select it, for LoginWithKubeconfig
}

// newActivity returns the argument of a handler. In a program, the startup has a client of its own, because the manager
// does not exist before the settings are final.
func (op *Operator) newActivity(activity string, call *handlers.Invocation) *Activity {
	op.registry.Lock()
	defer op.registry.Unlock()
	// A copy, because handlers run concurrently with the operator. Only the startup gets the settings that will be
	// used.
	settings := op.settings.values.deepCopySlices()
	a := &Activity{
		ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: &settings, cluster: op.flags.Cluster,
	}
	switch activity {
	case activities.Login:
		return a
	case activities.Startup:
		a.Settings = op.startupSettings
	}
	// The late client logs in at its first use, so a startup handler that does not need the cluster never waits for it.
	if a.Client, a.APIReader = op.clients.client, op.clients.apiReader; a.Client == nil && op.lateClient != nil {
		a.Client, a.APIReader = op.lateClient, op.lateClient
	}
	return a
}

// registerActivity registers a handler of an activity. The parameter missing is true if the user's function is nil.
func (op *Operator) registerActivity(
	verb, activity, id string, opts []activityOption, missing bool,
	fn func(ctx context.Context, a *Activity) (any, error),
) {
	where := registry.CallerLocation()
	// There is no registry to keep the error. The set-up of the next operator returns it.
	if op == nil {
		registry.AddOwnerless(fmt.Errorf("%s(%q): %w", verb, id, errNoOperator))
		return
	}
	// Probes are called every few seconds, so their successes are not logged.
	h := &handlers.Handler{
		ID: id, Family: handlers.Activity, Location: where, Activity: activity,
		IsFrequent: activity == activities.Probe,
		ActivityFunc: func(ctx context.Context, call *handlers.Invocation) (any, error) {
			return fn(ctx, op.newActivity(activity, call))
		},
	}
	_, wrong := applyOptions(h, asOptions(opts))
	op.registry.RegisterActivity(verb, h, append(checkHandler(id, missing), wrong...))
}

// OnStartup registers a handler that is called before all others, such as to change settings. Under [Main] everything
// waits for it; under [Operator.SetupWithManager] only this operator does. Errors mean the same as in a [ChangeFunc]. A
// permanent failure ends the program or the manager. See docs/activities.md. Kopf: on.startup.
func (op *Operator) OnStartup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.registerActivity("OnStartup", activities.Startup, id, opts, fn == nil,
		func(ctx context.Context, a *Activity) (any, error) {
			return nil, fn(ctx, a)
		})
}

// OnCleanup registers a handler that is called when all others have ended; not after a failed startup, a crash or a
// lost lease. A permanent failure, or passing [Settings].CleanupTimeout, results in exit code 1. Kopf: on.cleanup.
func (op *Operator) OnCleanup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.registerActivity("OnCleanup", activities.Cleanup, id, opts, fn == nil,
		func(ctx context.Context, a *Activity) (any, error) {
			return nil, fn(ctx, a)
		})
}

// OnProbe registers a handler whose result is served as JSON at --liveness. Results are kept for 10 seconds. A
// permanent failure, or a call of more than 10 seconds, results in status 500. Other errors are retried, so set
// [Errors] or [Retries] to fail at once. See docs/health.md. Kopf: on.probe.
func (op *Operator) OnProbe(
	id string, fn func(ctx context.Context, a *Activity) (any, error), opts ...activityOption,
) {
	op.registerActivity("OnProbe", activities.Probe, id, opts, fn == nil,
		func(ctx context.Context, a *Activity) (any, error) {
			return encodeResult(fn(ctx, a))
		})
}

// encodeResult encodes the result of a probe to JSON, once for all requests. An encoding error is a permanent error of
// the probe, not an error of the requests.
func encodeResult(result any, err error) (any, error) {
	if result == nil || err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, Permanent(fmt.Errorf("the result cannot be encoded: %w", err))
	}
	return json.RawMessage(data), nil
}

// ConnectionInfo holds the address of an API server and credentials. Set either the path or the data of a pair; data
// are PEM. Kopf: ConnectionInfo, AiohttpSession, with the same fields, such as ca_path.
type ConnectionInfo struct {
	// Server is the URL. Later logins may change it within the same cluster.
	Server string
	// CAPath and CAData hold the trusted CAs. Default: those of the system.
	CAPath string
	CAData []byte
	// Insecure accepts any server certificate.
	Insecure bool
	// Username and Password are for basic authentication.
	Username, Password string
	// Scheme precedes the token. Default: Bearer.
	Scheme string
	// Token is sent with every request.
	Token string
	// CertificatePath and CertificateData hold the client certificate.
	CertificatePath string
	CertificateData []byte
	// PrivateKeyPath and PrivateKeyData hold its key.
	PrivateKeyPath string
	PrivateKeyData []byte
	// DefaultNamespace receives events about cluster-scoped objects. Default: "default".
	DefaultNamespace string
	// ProxyURL is a proxy, such as http://host:3128.
	ProxyURL string
	// TrustEnv reads proxies from the environment if ProxyURL is empty.
	TrustEnv bool
	// Priority selects among handlers: the highest is used until it is refused.
	Priority int
	// Expiration is when a new login is needed. Default: at a refusal.
	Expiration time.Time
	// Config is for everything else, such as plugins. Other fields override it. Kopf: none.
	Config *rest.Config
}

// OnLogin registers a handler that returns credentials, or nil. It replaces the default lookup, which
// [LoginWithKubeconfig] and [LoginWithServiceAccount] bring back. It is only for [Main] and [Operator.Run]. Kopf:
// on.login.
//
// Handlers are called after the startup, and again when all credentials have expired or were refused with status 401.
// Requests wait meanwhile.
//
// Errors mean the same as in a [ChangeFunc]. The program exits with code 1 if a handler fails permanently, without new
// valid credentials, or after four refused logins in a row. See docs/activities.md.
func (op *Operator) OnLogin(
	id string, fn func(ctx context.Context, a *Activity) (*ConnectionInfo, error), opts ...activityOption,
) {
	op.registerActivity("OnLogin", activities.Login, id, opts, fn == nil,
		func(ctx context.Context, a *Activity) (any, error) {
			// A nil pointer in an interface is not nil: return an untyped nil.
			info, err := fn(ctx, a)
			if info == nil {
				return nil, err
			}
			return (*credentials.Info)(info), err
		})
}

// LoginWithKubeconfig returns the credentials of --kubeconfig, $KUBECONFIG or ~/.kube/config and of --context, with
// priority 10; nil without a file. Kopf: login_with_kubeconfig, login_via_client, login_via_pykube.
func LoginWithKubeconfig(_ context.Context, a *Activity) (*ConnectionInfo, error) {
	// Tests call this function with a nil Activity.
	var of serving.ClusterConfig
	if a != nil {
		of = a.cluster
	}
	return newConnectionInfo(credentials.FromKubeconfig(of.Kubeconfig, of.Context))
}

// LoginWithServiceAccount returns the credentials of the pod with priority 20; nil outside of a cluster. Kopf:
// login_with_service_account.
func LoginWithServiceAccount(context.Context, *Activity) (*ConnectionInfo, error) {
	return newConnectionInfo(credentials.FromServiceAccount())
}

// newConnectionInfo converts credentials to the exported type. Errors are permanent, because a retry would read the
// same file.
func newConnectionInfo(info *credentials.Info, err error) (*ConnectionInfo, error) {
	if err != nil {
		return nil, Permanent(err)
	}
	return (*ConnectionInfo)(info), nil
}

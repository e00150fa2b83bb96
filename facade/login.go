package kopf

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

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
	op.act("OnLogin", activities.Login, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		info, err := fn(ctx, op.loginOf(call))
		return (*credentials.Info)(info), err
	}))
}

// LoginWithKubeconfig returns the credentials of --kubeconfig, $KUBECONFIG or ~/.kube/config and of --context, with
// priority 10; nil without a file. Kopf: login_with_kubeconfig, login_via_client, login_via_pykube.
func LoginWithKubeconfig(_ context.Context, a *Activity) (*ConnectionInfo, error) {
	var of serving.Cluster
	if a != nil {
		of = a.cluster
	}
	return given(connection.Kubeconfig(of.Kubeconfig, of.Context))
}

// LoginWithServiceAccount returns the credentials of the pod with priority 20; nil outside of a cluster. Kopf:
// login_with_service_account.
func LoginWithServiceAccount(context.Context, *Activity) (*ConnectionInfo, error) {
	return given(connection.ServiceAccount())
}

// given converts to the exported type. Errors in a file are permanent, as a retry reads the same file.
func given(info *credentials.Info, err error) (*ConnectionInfo, error) {
	if err != nil {
		return nil, Permanent(err)
	}
	return (*ConnectionInfo)(info), nil
}

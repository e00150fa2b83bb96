package kopf

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// ConnectionInfo says how to connect to an API server, and as whom. Of a pair of a path and the data, only one is set;
// data are PEM. What the fields cannot say is for Config, over which they win. Kopf: ConnectionInfo, AiohttpSession.
type ConnectionInfo struct {
	// Server is the URL of the API server, such as https://host:6443. It can be another one after the next login, but
	// of the same cluster. Kopf: server.
	Server string
	// CAPath is the file of those who vouch for the server. Default: those that the system trusts. Kopf: ca_path.
	CAPath string
	// CAData is the content of such a file. Kopf: ca_data, also in base64.
	CAData []byte
	// Insecure takes anybody for the server. Kopf: insecure.
	Insecure bool
	// Username and Password are for HTTP basic authentication. Kopf: username, password.
	Username, Password string
	// Scheme is what comes before the token in the header. Default: Bearer. Kopf: scheme.
	Scheme string
	// Token is sent with every request. Kopf: token.
	Token string
	// CertificatePath is the file of the operator's own certificate. Kopf: certificate_path.
	CertificatePath string
	// CertificateData is the content of such a file. Kopf: certificate_data.
	CertificateData []byte
	// PrivateKeyPath is the file of the key of the certificate. Kopf: private_key_path.
	PrivateKeyPath string
	// PrivateKeyData is the content of such a file. Kopf: private_key_data.
	PrivateKeyData []byte
	// DefaultNamespace is where Kubernetes events go that are about objects without a namespace; it has no other use.
	// Default: "default", as in a manager of the project. Kopf: default_namespace.
	DefaultNamespace string
	// ProxyURL is the proxy on the way to the server, such as http://host:3128. Kopf: proxy_url.
	ProxyURL string
	// TrustEnv takes the proxies of the environment, such as HTTPS_PROXY, if there is no ProxyURL; as does
	// [NetworkingSettings].TrustEnv. Kopf: trust_env.
	TrustEnv bool
	// Priority decides among the credentials of several handlers: the highest is used, the others if that one is
	// refused. Among equals, it is chance. Kopf: priority.
	Priority int
	// Expiration is when there is a login for new credentials before anything else is sent. Default: when the API
	// server refuses these. Kopf: expiration.
	Expiration time.Time
	// Config is for all else that client-go can do: plugins for credentials, files of tokens, transports of your own.
	// What it renews by itself needs no login. Kopf: none.
	Config *rest.Config
}

// OnLogin registers a handler that gives the credentials for the API server; nil if it has none. With such a handler,
// there is no other way for them: --kubeconfig, $KUBECONFIG and the service account count if the handler asks for them,
// by [LoginWithKubeconfig] and [LoginWithServiceAccount], which can be handlers themselves. Under [Main] only: the
// connection of a manager is the project's. Kopf: on.login.
//
// # Flow
//
// Handlers are called after the startup, and again when there are no credentials left that are good: because they have
// expired, or because the API server refuses them with the status 401. All are called, and the credentials with the
// highest priority are used. The Client of [Activity] has a login of its own, when it is used first.
//
// Meanwhile nothing is lost: handlers go on, and requests, those of handlers included, wait for the new credentials,
// and are sent again with them. The operator's own requests wait no longer than [NetworkingSettings].RequestTimeout, 10
// seconds for writes. If a login takes longer, the operator logs it and repeats the writes, without another call of a
// handler.
//
// # Guarantees
//
// There is one login at a time. The last three credentials of a handler that have expired or were refused are not
// taken again. A request that is refused although the credentials are good is not repeated endlessly, and leads to no
// login.
//
// # Errors
//
// They mean what they do for handlers of changes, see [ChangeFunc]: an ordinary error is retried after a minute,
// without a limit, see [Retries] and [ErrorsMode]. The program ends with an error and the exit code 1 if a handler
// fails for good, if no handler gives credentials that make sense and are new, or if the API server refuses those of
// several logins in a row.
func (op *Operator) OnLogin(
	id string, fn func(ctx context.Context, a *Activity) (*ConnectionInfo, error), opts ...activityOption,
) {
	op.act("OnLogin", activities.Login, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		info, err := fn(ctx, op.loginOf(call))
		if info == nil {
			return nil, err
		}
		return info, err
	}))
}

// LoginWithKubeconfig gives the credentials of the file of --kubeconfig, else of the files in $KUBECONFIG, of which the
// first mention of each name counts, else of ~/.kube/config: for the context of --context, else for the current one. It
// can be a handler of [Operator.OnLogin], or be called by one. Without any such file, it returns nil, and no error. The
// priority is 10. Plugins for credentials, and files of tokens, are in Config: client-go calls and reads them whenever
// there is need. Kopf: login_with_kubeconfig, also for login_via_client and login_via_pykube.
func LoginWithKubeconfig(_ context.Context, a *Activity) (*ConnectionInfo, error) {
	var of serving.Cluster
	if a != nil {
		of = a.cluster
	}
	return given(connection.Kubeconfig(of.Kubeconfig, of.Context))
}

// LoginWithServiceAccount gives the credentials that Kubernetes mounts into a pod, and the server that its environment
// names. It can be a handler of [Operator.OnLogin], or be called by one. Outside of a cluster, it returns nil, and no
// error. The priority is 20. Client-go reads the file of the token again every minute. Kopf:
// login_with_service_account.
func LoginWithServiceAccount(context.Context, *Activity) (*ConnectionInfo, error) {
	return given(connection.ServiceAccount())
}

// given has the types of users. What is wrong in a file does not get better by itself.
func given(info *credentials.Info, err error) (*ConnectionInfo, error) {
	if err != nil {
		return nil, Permanent(err)
	}
	return (*ConnectionInfo)(info), nil
}

// logIn calls the handlers of logins; without any, it finds the cluster as kubectl does, or as pods do.
func (op *Operator) logIn(ctx context.Context, to serving.Cluster) (map[string]*credentials.Info, error) {
	if !op.acts(activities.Login) {
		info, err := connection.Login(to.Kubeconfig, to.Context)
		return map[string]*credentials.Info{"built-in": info}, err
	}
	op.mu.Lock()
	op.cluster = to
	op.mu.Unlock()
	login := op.activity(activities.Login)
	results, err := login.Run(ctx)
	if err != nil {
		return nil, op.loginError(ctx, err)
	}
	infos := map[string]*credentials.Info{}
	for _, h := range login.Handlers {
		info, _ := results[h.Description.ID].(*ConnectionInfo)
		infos[h.Description.ID] = (*credentials.Info)(info) // nil if it has none
	}
	return infos, nil
}

// loginError tells a failure from an operator that is told to stop.
func (op *Operator) loginError(ctx context.Context, err error) error {
	if err := op.activityError(err); err != nil {
		return err
	}
	return fmt.Errorf("operator %q: login: %w", op.name, ctx.Err())
}

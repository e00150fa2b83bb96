package serving

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// metricsPath is the path of the metrics, and the non-resource URL that a client must be allowed to get.
const metricsPath = "/metrics"

const (
	// A revoked token or permission is served for so long. A refusal is short, as people wait for new permissions.
	allowedFor, refusedFor = time.Minute, 10 * time.Second
	// maxDecisions limits the memory. The rate of reviews keeps unknown tokens from displacing the known ones.
	maxDecisions = 1000
	// All clients that reach the port can cause reviews, so the API server gets few of them in a second.
	reviewRate, reviewBurst = 5, 10
	reviewTimeout           = 10 * time.Second
)

// Metrics configures the server of the metrics.
type Metrics struct {
	// BindAddress is the address of the server. Empty and "0" turn it off.
	BindAddress string
	// Secure serves HTTPS to clients with permission only, by the certificate in CertDir, or else a self-signed one.
	Secure  bool
	CertDir string
}

// IsOff reports whether the server is turned off.
func (m Metrics) IsOff() bool { return m.BindAddress == "" || m.BindAddress == noAddress }

// serverOptions returns the options of the server.
func (m Metrics) serverOptions(log logr.Logger) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cmp.Or(m.BindAddress, noAddress)}
	if m.Secure {
		options.SecureServing, options.CertDir, options.FilterProvider = true, m.CertDir, MetricsFilter(log)
	}
	return options
}

// accessDecision is the answer to a client: http.StatusOK, or a refusal with its text.
type accessDecision struct {
	code int
	text string
}

// metricsAccess decides who can read the metrics.
type metricsAccess struct {
	tokens    authenticationclient.TokenReviewInterface
	rights    authorizationclient.SubjectAccessReviewInterface
	decisions *cache.LRUExpireCache   // by the hash of the token
	logging   flowcontrol.RateLimiter // limits the log lines about the API server
	log       logr.Logger
}

// MetricsFilter returns a filter that serves only clients with the permission to get the path /metrics. It reviews
// their bearer tokens and permissions by the API server, and remembers the decisions for a short time. Without an
// answer of the API server, it refuses.
func MetricsFilter(log logr.Logger) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
		config = rest.CopyConfig(config)
		config.RateLimiter, config.QPS, config.Burst = nil, reviewRate, reviewBurst
		tokens, err := authenticationclient.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("making a client for token reviews: %w", err)
		}
		rights, err := authorizationclient.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("making a client for access reviews: %w", err)
		}
		access := &metricsAccess{
			tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(),
			decisions: cache.NewLRUExpireCache(maxDecisions), log: log,
			logging: flowcontrol.NewTokenBucketRateLimiter(1.0/60, 1),
		}
		return func(_ logr.Logger, served http.Handler) (http.Handler, error) { return access.guard(served), nil }, nil
	}
}

// guard returns a handler that passes only permitted requests on.
func (a *metricsAccess) guard(served http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		decision := a.decide(r)
		if decision.code == http.StatusOK {
			served.ServeHTTP(w, r)
			return
		}
		if decision.code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, decision.text, decision.code)
	})
}

// decide returns the decision for a request, which is that of a former request with the same token, if it is recent.
// Errors are not remembered.
func (a *metricsAccess) decide(r *http.Request) accessDecision {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return accessDecision{http.StatusUnauthorized, "Metrics need a bearer token: send the one of a service account"}
	}
	// The memory of the process does not have the tokens of others for longer than necessary.
	key := sha256.Sum256([]byte(token))
	if known, ok := a.decisions.Get(key); ok {
		return known.(accessDecision) //nolint:errcheck,forcetypeassert // all values have this type
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	decision, err := a.review(ctx, token)
	switch {
	case err != nil:
		a.logError(r.Context(), err)
		return accessDecision{http.StatusInternalServerError, "The permission could not be checked: see the log of " +
			"the operator"}
	case decision.code == http.StatusOK:
		a.decisions.Add(key, decision, allowedFor)
	default:
		a.decisions.Add(key, decision, refusedFor)
	}
	return decision
}

// review reviews a token, and the permission of its user.
func (a *metricsAccess) review(ctx context.Context, token string) (d accessDecision, err error) {
	known, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return d, fmt.Errorf("reviewing a token: %w", err)
	}
	if !known.Status.Authenticated {
		return accessDecision{http.StatusUnauthorized, "The bearer token is not valid in this cluster"}, nil
	}
	user := known.Status.User
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: metricsPath, Verb: "get"},
	}
	for name, values := range user.Extra {
		spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	right, err := a.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return d, fmt.Errorf("reviewing a permission: %w", err)
	}
	if !right.Status.Allowed {
		return accessDecision{http.StatusForbidden, fmt.Sprintf("The user %q may not get the path %s: bind it to a "+
			"ClusterRole with this nonResourceURL", user.Username, metricsPath)}, nil
	}
	return accessDecision{code: http.StatusOK}, nil
}

// logError logs an error of the API server, once in a minute. A client that has gone is not an error.
func (a *metricsAccess) logError(ctx context.Context, err error) {
	if ctx.Err() == nil && a.logging.TryAccept() {
		a.log.Error(err, "Refusing to serve metrics: cannot check who reads them; the operator needs the API server, "+
			"and the permission to create tokenreviews and subjectaccessreviews")
	}
}

package ngrok

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.ngrok.com/ngrok/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

const (
	// closeTimeout limits the time for running requests at the end.
	closeTimeout = 5 * time.Second
	// headerTimeout limits the time in which the service sends the headers of a request. idleTimeout is how long unused
	// connections to the webhook server are kept.
	headerTimeout, idleTimeout = 10 * time.Second, 30 * time.Second
)

// permanentErrorCodes are the codes of errors that retries cannot resolve: the token is malformed, unknown, revoked, or
// missing.
var permanentErrorCodes = []string{"ERR_NGROK_105", "ERR_NGROK_106", "ERR_NGROK_107", "ERR_NGROK_4018"}

// Agent opens the endpoint at ngrok. Each ngrok.Agent implements it.
type Agent interface {
	Listen(context.Context, ...ngrok.EndpointOption) (ngrok.EndpointListener, error)
	Disconnect() error
}

// Tunnel is a tunnel through ngrok. The zero value uses the token in the environment. Kopf: WebhookNgrokTunnel.
type Tunnel struct {
	// Authtoken is the token of the account. Default: $NGROK_AUTHTOKEN. Kopf: token.
	Authtoken string
	// URL is the public URL, such as "https://databases.ngrok.app", if the account has one. Default: ngrok chooses it.
	URL string
	// Options are further options of the endpoint, such as ngrok.WithTrafficPolicy.
	Options []ngrok.EndpointOption
	// NewAgent returns the agent of the endpoint. It is called each time the tunnel is opened. Default: ngrok.NewAgent,
	// with the token and the logger of the operator at the debug level.
	NewAgent func(ctx context.Context) (Agent, error)
}

var _ tunnels.Tunnel = Tunnel{}

// Run implements [tunnels.Tunnel]. If the token is missing or ngrok rejects it, retries cannot help, so the error is a
// reconcile.TerminalError.
func (t Tunnel) Run(
	ctx context.Context, to tunnels.Local, told func(admissionregistrationv1.WebhookClientConfig),
) error {
	proxy, err := proxyTo(ctx, to)
	if err != nil {
		return err
	}
	agent, err := t.newAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Disconnect() }() // the endpoint is closed, or was never open
	options := t.Options
	// Options belongs to the user, so it is copied.
	if t.URL != "" {
		options = append(slices.Clone(options), ngrok.WithURL(t.URL))
	}
	endpoint, err := agent.Listen(ctx, options...)
	if err != nil {
		return markTerminal(err)
	}
	// The endpoint is a listener: requests of the service arrive in this process and are forwarded to the webhook
	// server.
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(endpoint) }()
	// The service has a public certificate, so there is no CA bundle.
	told(tunnels.ByURL(strings.TrimRight(endpoint.URL().String(), "/")+to.Path, nil))
	select {
	case err := <-ended:
		return fmt.Errorf("ngrok has closed the tunnel from %s: %w", endpoint.URL(), err)
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = server.Shutdown(limited) // the service may already be disconnected
	return nil
}

// newAgent returns the agent of the endpoint.
func (t Tunnel) newAgent(ctx context.Context) (Agent, error) {
	// The operator appends its own path to the URL, and API servers only call https.
	if public, err := url.Parse(t.URL); t.URL != "" && (err != nil || public.Scheme != "https" || public.Path != "") {
		return nil, reconcile.TerminalError(fmt.Errorf(
			"the URL %q cannot be that of a tunnel: write one such as %q", t.URL, "https://databases.ngrok.app"))
	}
	if t.NewAgent != nil {
		return t.NewAgent(ctx)
	}
	token := cmp.Or(t.Authtoken, os.Getenv("NGROK_AUTHTOKEN"))
	if token == "" {
		return nil, reconcile.TerminalError(errors.New(
			"ngrok demands the token of an account: set NGROK_AUTHTOKEN, or Authtoken of the tunnel"))
	}
	log := slog.New(logr.ToSlogHandler(logf.FromContext(ctx).WithName("ngrok").V(1)))
	agent, err := ngrok.NewAgent(ngrok.WithAuthtoken(token), ngrok.WithLogger(log))
	if err != nil {
		return nil, fmt.Errorf("making an agent of ngrok: %w", err)
	}
	return agent, nil
}

// proxyTo returns a handler that forwards requests to the webhook server.
func proxyTo(ctx context.Context, local tunnels.Local) (http.Handler, error) {
	target, err := url.Parse(local.URL())
	if err != nil {
		return nil, fmt.Errorf("reading the address of the webhook server: %w", err)
	}
	// Without a bundle, the CAs of the system apply.
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if local.Bundle != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(local.Bundle) {
			return nil, errors.New("there is no certificate in the CA bundle of the webhook server")
		}
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{TLSClientConfig: config, IdleConnTimeout: idleTimeout},
		ErrorLog:  slog.NewLogLogger(logr.ToSlogHandler(logf.FromContext(ctx).WithName("ngrok")), slog.LevelError),
	}, nil
}

// markTerminal marks errors that retries cannot resolve.
func markTerminal(err error) error {
	err = fmt.Errorf("opening a tunnel at ngrok: %w", err)
	var coded ngrok.Error
	if errors.As(err, &coded) && slices.Contains(permanentErrorCodes, coded.Code()) {
		return reconcile.TerminalError(err)
	}
	return err
}

package devcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// garbageDelay is the delay of the garbage collection after a change. It lets the answer to the request arrive first.
const garbageDelay = 50 * time.Millisecond

// shutdownTimeout limits the time for requests in progress when the cluster ends. Watches end at once.
const shutdownTimeout = 3 * time.Second

// Start serves a development cluster until ctx ends; [Cluster.Wait] then returns.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	// Each step below only runs if all former ones succeeded; any error closes the listener.
	c := &Cluster{memory: memapi.New(), options: options, done: make(chan struct{})}
	listener, err := listenLoopback(ctx, options.Address)
	if err != nil {
		return nil, err
	}
	serving, authority, err := newCertificates(listener.Addr())
	if err == nil {
		c.handler, err = newHandler(c.memory, listener.Addr().String(), options.Log)
	}
	if err == nil {
		err = c.prepareMemory()
	}
	if err == nil {
		c.handler.recorder, err = newRecorder(options.Record)
	}
	if err == nil {
		c.config = &rest.Config{
			Host: "https://" + listener.Addr().String(), BearerToken: c.handler.tokens.adminToken,
			// The token and the authority are also those of the kubeconfig file.
			TLSClientConfig: rest.TLSClientConfig{CAData: authority}, QPS: -1,
		}
		err = c.writeKubeconfig()
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	c.cleanUp = append(c.cleanUp, c.handler.recorder.close)
	c.server = &http.Server{
		Handler: endWatches(ctx, c.handler), ReadHeaderTimeout: 10 * time.Second, ErrorLog: quietLog(options.Log),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12},
	}
	// Buffered, so that the goroutine ends even if the result is not read.
	failed := make(chan error, 1)
	go func() { failed <- c.server.ServeTLS(listener, "", "") }()
	go c.serveUntilDone(ctx, failed)
	// It starts last, when all loaded objects exist.
	if options.PretendReady {
		c.pretendReady(ctx)
	}
	return c, nil
}

// endWatches cancels watches when ctx ends. Other requests get some time to complete: see shutdownTimeout.
func endWatches(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Shutdown would otherwise wait for a watch until the timeout.
		if r.URL.Query().Has("watch") {
			watching, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			r = r.WithContext(watching)
		}
		next.ServeHTTP(w, r)
	})
}

// prepareMemory configures the server in memory and loads the objects, before the first request.
func (c *Cluster) prepareMemory() error {
	// Resources come first: loading requires them.
	for _, r := range moreResources {
		c.memory.Install(r)
	}
	// Definitions are validated with the libraries that memapi does not link.
	c.memory.SetExtensions(memapi.Extensions{
		ValidateDefinition: validateDefinition, CompileRules: compileRules, NewConverter: newConverter,
	})
	c.memory.AddReviewer(webhookCaller{c}.reviewRequest, func() bool { return true })
	c.memory.SetAdmission(memapi.Admission{Mutate: applyDefaults, Validate: validateWebhooks})
	// Namespaces and garbage are processed in the background, like in a real cluster.
	c.memory.ManageNamespaces(garbageDelay)
	c.memory.CollectGarbage(garbageDelay)
	c.memory.LimitHistory(historyLimit)
	if c.options.IgnoreShardSelector {
		c.memory.IgnoreShardSelector()
	}
	// An unwritable file is reported now, not after hours of work at the end.
	if err := checkWritable(c.options.Save); err != nil {
		return err
	}
	return c.loadObjects(c.options.Load)
}

// serveUntilDone waits for the end of ctx or a failure of the server, then saves the objects and removes temporary
// files.
func (c *Cluster) serveUntilDone(ctx context.Context, failed <-chan error) {
	defer close(c.done)
	var problems []error
	select {
	case err := <-failed:
		problems = append(problems, fmt.Errorf("serving the development cluster: %w", err))
	case <-ctx.Done():
		// Requests may complete; Close ends those that exceed the timeout.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := c.server.Shutdown(last); err != nil {
			problems = append(problems, c.server.Close())
		}
	}
	problems = append(problems, c.saveObjects())
	// Temporary files are removed after the objects were saved.
	for _, one := range c.cleanUp {
		problems = append(problems, one())
	}
	c.err = errors.Join(problems...)
}

// listenLoopback opens the listener. It refuses addresses that other machines can reach, because the cluster does not
// restrict its users.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the address %q is not a loopback address: use 127.0.0.1, ::1 or localhost", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: choose another address, or port 0 for a free one", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	// The name localhost can resolve to any address, depending on the machine's configuration.
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = listener.Close()
		return nil, fmt.Errorf("the address %q resolves to %s, which is not a loopback address", address,
			listener.Addr())
	}
	return listener, nil
}

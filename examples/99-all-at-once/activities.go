package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// begin is called before the first request to the cluster, and may still change the settings. Here the API server calls
// this process on your own machine; in a cluster, set Service instead: see config/webhook.
func begin(ctx context.Context, s *kopf.Activity) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0") // any free port
	if err != nil {
		return err
	}
	s.Settings.Admission.URL = "https://" + listener.Addr().String()
	s.Settings.Admission.Port = listener.Addr().(*net.TCPAddr).Port //nolint:errcheck // it is one
	log.FromContext(ctx).Info("Begins", "namespaces", s.Settings.Namespaces)
	return listener.Close()
}

// now is called for each health check of --liveness.
func now(context.Context, *kopf.Activity) (any, error) { return time.Now().UTC(), nil }

// end is called when all other handlers have ended.
func end(ctx context.Context, _ *kopf.Activity) error {
	log.FromContext(ctx).Info("Ends")
	return nil
}

func setDefault(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
	return kopf.SetField(a.Object, "spec.size", kopf.GetFieldOr(a.Object, "spec.size", 1))
}

func check(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
	if size := kopf.GetFieldOr(a.Object, "spec.size", 0); size > 100 {
		return kopf.Deny(http.StatusForbidden, "the size must be 100 at most, not %d", size)
	}
	return nil
}

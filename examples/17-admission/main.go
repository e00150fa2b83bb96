// Command 17-admission has handlers that are called before objects are stored: they deny, warn, and fill in defaults.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	Admission = kopf.Admission[*kopf.Unstructured]
	Change    = kopf.Change[*kopf.Unstructured]
)

func main() {
	port, err := freePort()
	if err != nil {
		fmt.Fprintln(os.Stderr, "finding a port for the webhook server:", err)
		os.Exit(1)
	}
	// On your own machine: the API server calls this process, which makes a certificate for as long as it runs. In a
	// cluster, all it takes is Managed and Service: see config/webhook.
	op := kopf.New("admission.kopf.dev", kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: "admission.kopf.dev", URL: fmt.Sprintf("https://127.0.0.1:%d", port), Port: port, SelfSigned: true,
	}})
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.Mutate("defaults", setDefaults)
	stored := kopf.Operations("CREATE", "UPDATE")
	examples.Validate("size", checkSize, stored)
	examples.Validate("default-value", warnOfDefault, stored)
	examples.Validate("protection", protect, kopf.Operations("DELETE"))
	registerNumbers(examples)
	examples.OnCreate("create_fn", created)
	kopf.Main(op)
}

// freePort returns a free port. Any port works, because the operator writes it into its webhook configurations.
func freePort() (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil //nolint:errcheck // it is one
}

// setDefaults changes the object in place. It may also deny the request.
func setDefaults(_ context.Context, a *Admission) error {
	if replicas := kopf.GetFieldOr(a.Object, "spec.replicas", 1); replicas < 0 {
		return kopf.Deny(http.StatusBadRequest, "%d replicas are too few", replicas)
	}
	if err := kopf.SetField(a.Object, "spec.managed", true); err != nil {
		return err
	}
	return kopf.SetField(a.Object, "spec.replicas", kopf.GetFieldOr(a.Object, "spec.replicas", 1))
}

// checkSize denies requests with its own code and text. It gets the object as it will be stored.
func checkSize(ctx context.Context, a *Admission) error {
	size := kopf.GetFieldOr(a.Object, "spec.size", 0)
	log.FromContext(ctx).Info("Asked for a size", "size", size, "dryRun", a.DryRun, "user", a.UserInfo.Username)
	if size > 100 {
		return kopf.Deny(http.StatusForbidden, "the size must be 100 at most, not %d", size)
	}
	return nil
}

// warnOfDefault allows the request, and returns a warning to its sender.
func warnOfDefault(_ context.Context, a *Admission) error {
	if kopf.GetFieldOr(a.Object, "spec.field", "") == "value" {
		a.Warning("The default value is used. It is okay but worth changing.")
	}
	return nil
}

// protect is called for deletions, with the present object in Old.
func protect(_ context.Context, a *Admission) error {
	if kopf.GetFieldOr(a.Old, "spec.protected", false) {
		return kopf.Deny(http.StatusForbidden, "%s is protected: set spec.protected to false first", a.Name)
	}
	return nil
}

// created is called after the object is stored, with the defaults in it.
func created(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Created", "spec", c.Object.Object["spec"])
	return nil
}

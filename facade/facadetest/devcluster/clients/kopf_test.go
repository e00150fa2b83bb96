package clients_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// output collects the output of a process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the output contains the lines, in any order.
func (o *output) await(t *testing.T, lines ...string) {
	t.Helper()
	until(t, fmt.Sprintf("%q", lines), func(context.Context) error {
		text := "\n" + o.String()
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("there is no line %q in:\n%s", line, text)
			}
		}
		return nil
	})
}

// startKopf runs testdata/handlers.py with genuine Kopf in one namespace.
func startKopf(t *testing.T, folder string, c cluster, namespace string) (out *output, stop func()) {
	t.Helper()
	out = &output{}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "kopf"), "run", "-n", namespace,
		filepath.Join("testdata", "handlers.py"))
	cmd.Env = environment(t, c, "CERTIFICATES="+writeCertificate(t))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Kopf prints:\n%s", out)
		}
	})
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return out, stop
}

// writeCertificate writes the files cert.pem and key.pem for a server at 127.0.0.1. The certificate is self-signed.
func writeCertificate(t *testing.T) (folder string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestGenuineKopf(t *testing.T) {
	folder := python(t, "client.txt")
	onBoth(t, devcluster.Options{}, func(t *testing.T, c cluster) {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		api, err := client.New(c.config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		define(t, api)
		namespace := newNamespace(t, kubernetes.NewForConfigOrDie(c.config))
		out, stop := startKopf(t, folder, c, namespace)
		database := createMutated(t, api, namespace)
		out.await(t, "CALL create", "CALL timer", "CALL daemon", "CALL event ADDED")
		checkKopfEvents(t, api, database)
		checkDenied(t, api, database)
		before := database.DeepCopy()
		setField(t, database, "postgres", "spec", "engine")
		if err := api.Patch(t.Context(), database, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		out.await(t, "CALL update", "CALL field mysql postgres", "CALL event MODIFIED")
		if err := api.Delete(t.Context(), database); err != nil {
			t.Fatal(err)
		}
		out.await(t, "CALL delete", "CALL daemon stopped", "CALL event DELETED")
		stop()
	})
}

func setField(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// createMutated creates a Database as soon as Kopf's mutating webhook is in effect.
func createMutated(t *testing.T, api client.Client, namespace string) *unstructured.Unstructured {
	t.Helper()
	database := newDatabase(namespace, "main")
	until(t, "the mutating webhook", func(ctx context.Context) error {
		*database = *newDatabase(namespace, "main")
		setField(t, database, "mysql", "spec", "engine")
		if err := api.Create(ctx, database, client.DryRunAll); err != nil {
			return err
		}
		if replicas, _, _ := unstructured.NestedInt64(database.Object, "spec", "replicas"); replicas != 5 {
			return fmt.Errorf("the Database has %d replicas, want the 5 of the webhook", replicas)
		}
		return nil
	})
	*database = *newDatabase(namespace, "main")
	setField(t, database, "mysql", "spec", "engine")
	if err := api.Create(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	return database
}

// checkDenied waits for Kopf's validating webhook, which may be configured after the mutating one.
func checkDenied(t *testing.T, api client.Client, database *unstructured.Unstructured) {
	t.Helper()
	until(t, "the validating webhook", func(ctx context.Context) error {
		changed := database.DeepCopy()
		setField(t, changed, int64(13), "spec", "replicas")
		err := api.Patch(ctx, changed, client.MergeFrom(database), client.DryRunAll)
		var status apierrors.APIStatus
		if !errors.As(err, &status) || !strings.Contains(err.Error(), "thirteen replicas bring bad luck") {
			return fmt.Errorf("got %w, want the denial", err)
		}
		return nil
	})
}

// checkKopfEvents waits for the event that a handler posts, and for one of its logger. Kopf posts log records as events
// only if settings.posting.loggers is set.
func checkKopfEvents(t *testing.T, api client.Client, database *unstructured.Unstructured) {
	t.Helper()
	until(t, "Kopf's events", func(ctx context.Context) error {
		all := &corev1.EventList{}
		if err := api.List(ctx, all, client.InNamespace(database.GetNamespace())); err != nil {
			return err
		}
		posted := map[string]bool{}
		for _, one := range all.Items {
			if one.InvolvedObject.UID == database.GetUID() {
				posted[one.Message] = true
			}
		}
		if !posted["an explicit event of mysql"] || !posted["a logged event"] {
			return fmt.Errorf("the events are %v", posted)
		}
		return nil
	})
}

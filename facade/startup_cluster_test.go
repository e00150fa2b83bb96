package kopf_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// TestLoginAtStartup shows that LoginWithKubeconfig at startup uses the kubeconfig of the program, not the current
// context of the user.
func TestLoginAtStartup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const content = `{apiVersion: v1, kind: Config, current-context: there,
clusters: [{name: there, cluster: {server: "https://there.example.org"}}],
users: [{name: me, user: {token: secret}}],
contexts: [{name: there, context: {cluster: there, user: me}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	op := kopf.New("test.example.org")
	var server string
	op.OnStartup("login", func(ctx context.Context, a *kopf.Activity) error {
		info, err := kopf.LoginWithKubeconfig(ctx, a)
		if err == nil {
			server = info.Server
		}
		return kopf.Permanent(errors.Join(err, errors.New("this is enough")))
	})
	err := op.Run(t.Context(), kopf.RunSettings{Kubeconfig: file})
	if err == nil || server != "https://there.example.org" {
		t.Errorf("logged in at %q: %v", server, err)
	}
}

// TestEventsOfATask shows that the client of a task finds the kinds of typed objects, like the client of a change.
func TestEventsOfATask(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"}}
	got := facadetest.NewTask(pod).Call(t.Context(), func(_ context.Context, task *kopf.Task[*corev1.Pod]) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "2"}}
		task.EventRecorderFor(node).Info("Seen", "by a task")
		return nil
	})
	if got.Err != nil || len(got.Events) != 1 {
		t.Errorf("want one event: got %v, events %v", got.Err, got.Events)
	}
}

package devcluster_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// newReader returns an operator whose handler reads a Secret and creates a Secret, and closes done after a call.
func newReader(done chan struct{}) *kopf.Operator {
	op := kopf.New("reader.example.org", kopf.Settings{})
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("read", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		if c.Object.Name != "a" {
			return nil
		}
		secret := &corev1.Secret{}
		secret.Name, secret.Namespace = "made", c.Object.Namespace
		if err := c.Client.Create(ctx, secret); err != nil {
			return err
		}
		defer close(done)
		return c.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	return op
}

// executeCommand runs a command of an operator until it ends, and returns both outputs.
func executeCommand(ctx context.Context, op *kopf.Operator, args ...string) (out, hints string, err error) {
	var outBuffer, hintBuffer bytes.Buffer
	command := op.Command()
	command.SetArgs(args)
	command.SetOut(&outBuffer)
	command.SetErr(&hintBuffer)
	err = command.ExecuteContext(ctx)
	return outBuffer.String(), hintBuffer.String(), err
}

// TestRecordedOperator shows that the rules are proposed that a handler used in a run and that are not declared. The
// requests of the framework are covered, and the printed role stays as it is.
func TestRecordedOperator(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	cluster, end := startCluster(t, devcluster.Options{Record: file})
	ctx, stop := context.WithCancel(t.Context())
	ended, done := make(chan error, 1), make(chan struct{})
	op := newReader(done)
	// The command run would redirect the logs of libraries, which parallel tests use.
	go func() { ended <- op.Run(ctx, kopf.RunSettings{Kubeconfig: cluster.Kubeconfig(), Log: logr.Discard()}) }()
	if err := createConfigMap(t, clientOf(t, cluster), "a"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
		stop()
	case err := <-ended:
		t.Fatalf("the operator ended before its handler was called: %v", err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	end()
	without, _, err := executeCommand(t.Context(), newReader(nil), "manifests", "--all-namespaces")
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"manifests", "--all-namespaces", "--from-recording", file}
	out, hints, err := executeCommand(t.Context(), newReader(nil), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	const rule = `rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ` +
		`Verbs: []string{"get", "create"}},`
	if !strings.Contains(hints, "# \top.Needs(\n# \t\t"+rule+"\n# \t)\n") || strings.Count(hints, "PolicyRule") != 1 {
		t.Errorf("only the rule for Secrets is proposed, as a comment: %s", hints)
	}
	if out != without {
		t.Errorf("a recording does not change the manifests:\n%s", out)
	}
	declaring := newReader(nil)
	declaring.Needs(rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create"},
	})
	if _, hints, err = executeCommand(t.Context(), declaring, arguments...); err != nil ||
		!strings.Contains(hints, "the permissions cover all recorded requests") {
		t.Errorf("with the proposed rule, nothing is missing: error %v\n%s", err, hints)
	}
}

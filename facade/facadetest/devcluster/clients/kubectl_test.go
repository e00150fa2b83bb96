package clients_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// kubectlVersions lists the kubectl versions that Kubernetes supports for the reported server version 1.36.
var kubectlVersions = []string{"1.35", "1.36", "1.37"}

// kubectl builds kubectl of a minor version.
func kubectl(t *testing.T, minor string) string {
	t.Helper()
	return build(t, "kubectl", minor+".mod", ".", "kubectl-"+minor)
}

// versionFlags returns the linker flags that set the version of kubectl, as its releases do.
func versionFlags(t *testing.T, module, modfile string) string {
	t.Helper()
	if module != "kubectl" {
		return ""
	}
	version := goCommand(t, module, "list", "-modfile="+modfile, "-m", "-f", "{{.Version}}", "k8s.io/kubectl")
	version = "v1" + strings.TrimPrefix(version, "v0")
	parts := strings.Split(version, ".")
	const variables = "k8s.io/component-base/version."
	return fmt.Sprintf(
		"-X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=1 -X %[1]sgitMinor=%[3]s", variables, version, parts[1],
	)
}

func TestKubectlOnTheDevelopmentCluster(t *testing.T) {
	for _, minor := range kubectlVersions {
		t.Run(minor, func(t *testing.T) {
			program := kubectl(t, minor)
			c := startDevelopment(t, devcluster.Options{})
			version := command{name: "ClientVersion", line: "version", want: "Client Version: v" + minor}
			play(t, program, c, append([]command{version}, commands()...))
			watchWithKubectl(t, program, c)
		})
	}
}

// TestKubectlOnTheRealServer runs the same commands against the real server, to show that the expectations hold there.
func TestKubectlOnTheRealServer(t *testing.T) {
	c, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	play(t, assetsKubectl(t), c, commands())
	watchWithKubectl(t, assetsKubectl(t), c)
}

// watchWithKubectl checks that "get -w" shows each change in a separate row.
func watchWithKubectl(t *testing.T, program string, c cluster) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(c.config)
	maps := client.CoreV1().ConfigMaps(newNamespace(t, client))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}
	made, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "get", "configmaps", "-n", made.Namespace, "-w", "--output-watch-events")
	cmd.Env, cmd.Stderr = environment(t, c), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	await := func(event, name string) {
		for lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 && fields[0] == event && fields[1] == name {
				return
			}
		}
		t.Fatalf("kubectl get -w must show the row %s %s before it ends", event, name)
	}
	await("ADDED", "watched")
	made.Data = map[string]string{"a": "b"}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("MODIFIED", "watched")
	if err := maps.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("DELETED", "watched")
	cancel()
	_ = cmd.Wait() // the context has killed it
}

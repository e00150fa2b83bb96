package memapi_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// patience is how long the real collector may take; it is rarely more than a second.
const patience = 2 * time.Minute

// The same stories beside kube-controller-manager: what is left has to be what is left in memory.
func playGarbage(t *testing.T, environment *envtest.Environment, genuine *player) {
	startCollector(t, environment)
	// One that begins late does not see what happened in which order, and may leave something.
	collectOne(t, genuine, "first")
	told := map[string]*player{}
	for name, s := range stories() {
		namespace := strings.ToLower(name)
		told[name] = newPlayer(t, genuine.host, genuine.through)
		told[name].enter(namespace)
		told[name].tell(s)
	}
	for name, s := range stories() {
		own := newPlayer(t, "http://mem", collecting())
		own.enter(strings.ToLower(name))
		own.tell(s)
		if d := cmp.Diff(own.left(), await(told[name], own.left())); d != "" {
			t.Errorf("%s: %s: -memory, +real:\n%s", name, s.reason, d)
		}
	}
	// An object of which nothing may be left has gone the same way, after all of them.
	collectOne(t, genuine, "last")
	for name, s := range stories() {
		if d := cmp.Diff(s.want, told[name].left()); d != "" {
			t.Errorf("%s: %s: in the end: -want, +real:\n%s", name, s.reason, d)
		}
	}
	t.Logf("%d stories about garbage", len(told))
}

// collectOne waits until the real collector has removed an object.
func collectOne(t *testing.T, genuine *player, namespace string) {
	t.Helper()
	p := newPlayer(t, genuine.host, genuine.through)
	p.enter(namespace)
	p.tell(stories()["Absent"])
	if left := await(p, nil); len(left) > 0 {
		t.Fatalf("the collector does not come to an end: %v", left)
	}
}

func collecting() *memapi.Server {
	server := memapi.New()
	server.CollectGarbage(0)
	return server
}

// await looks until there is what is wanted, or patience is at its end.
func await(p *player, want []string) []string {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if left := p.left(); cmp.Equal(want, left) || time.Now().After(end) {
			return left
		}
	}
}

// enter makes a namespace, and goes on in it.
func (p *player) enter(namespace string) {
	p.t.Helper()
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespace + `"}}`
	response := p.send(http.MethodPost, p.host+"/api/v1/namespaces", plain, body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		p.t.Fatalf("making the namespace %s: %s", namespace, response.Status)
	}
	p.namespace = namespace
}

// startCollector runs the garbage collector of Kubernetes, and nothing else of what a cluster has.
func startCollector(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	if _, err := os.Stat(program); err != nil {
		t.Skip("there is no kube-controller-manager; `make test-envtest` builds it")
	}
	user, err := environment.AddUser(envtest.User{Name: "collector", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--kubeconfig="+file, "--controllers=garbage-collector-controller",
		"--leader-elect=false", "--secure-port=0")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

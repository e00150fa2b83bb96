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

// waitTimeout is the longest wait for the real collector, which rarely needs more than a second.
const waitTimeout = 2 * time.Minute

// playGarbage plays the stories against the real garbage collector. The remaining objects must be the same as in
// memory.
func playGarbage(t *testing.T, environment *envtest.Environment, genuine *player) {
	startCollector(t, environment)
	// A collector that starts late misses the order of events, and may keep objects.
	collectOne(t, genuine, "first")
	told := map[string]*player{}
	for name, s := range garbageCases() {
		namespace := strings.ToLower(name)
		told[name] = newPlayer(t, genuine.host, genuine.transport)
		told[name].createNamespace(namespace)
		told[name].playStory(s)
	}
	for name, s := range garbageCases() {
		own := newPlayer(t, "http://mem", newCollectingServer())
		own.createNamespace(strings.ToLower(name))
		own.playStory(s)
		if d := cmp.Diff(own.remainingObjects(), awaitRemaining(told[name], own.remainingObjects())); d != "" {
			t.Errorf("%s: %s: remaining objects: -memory, +real:\n%s", name, s.reason, d)
		}
	}
	// The collector removes this object last, so it has processed all objects of the stories.
	collectOne(t, genuine, "last")
	for name, s := range garbageCases() {
		if d := cmp.Diff(s.want, told[name].remainingObjects()); d != "" {
			t.Errorf("%s: %s: after the last collection: -want, +real:\n%s", name, s.reason, d)
		}
	}
	t.Logf("%d stories about garbage", len(told))
}

// collectOne waits until the real collector has removed an object.
func collectOne(t *testing.T, genuine *player, namespace string) {
	t.Helper()
	p := newPlayer(t, genuine.host, genuine.transport)
	p.createNamespace(namespace)
	p.playStory(garbageCases()["Absent"])
	if left := awaitRemaining(p, nil); len(left) > 0 {
		t.Fatalf("the collector did not remove the dependent without an owner: %v", left)
	}
}

func newCollectingServer() *memapi.Server {
	server := memapi.New()
	server.CollectGarbage(0)
	return server
}

// awaitRemaining polls until the remaining objects are the wanted ones, or until patience is over.
func awaitRemaining(p *player, want []string) []string {
	for end := time.Now().Add(waitTimeout); ; time.Sleep(50 * time.Millisecond) {
		if left := p.remainingObjects(); cmp.Equal(want, left) || time.Now().After(end) {
			return left
		}
	}
}

// createNamespace creates a namespace and uses it for all further requests.
func (p *player) createNamespace(namespace string) {
	p.t.Helper()
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespace + `"}}`
	response := p.send(http.MethodPost, p.host+"/api/v1/namespaces", jsonContentType, body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		p.t.Fatalf("creating the namespace %s: %s", namespace, response.Status)
	}
	p.namespace = namespace
}

// startCollector runs only the garbage collector of Kubernetes.
func startCollector(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	if _, err := os.Stat(program); err != nil {
		t.Skip("kube-controller-manager is missing: run `make test-envtest` to build it")
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

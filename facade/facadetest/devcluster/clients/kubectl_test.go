package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// commandTimeout is for a machine under load.
const commandTimeout = 2 * time.Minute

// command is one call of kubectl, and a pattern for its output.
type command struct {
	name, line, want string
	// fails is set if kubectl must report an error.
	fails bool
	// apart says why kube-apiserver alone, without controllers and nodes, is not asked.
	apart string
	// editor is the program that changes the file of "edit".
	editor string
}

const noControllers = "kube-apiserver runs without controllers here"

// commands are in an order: each relies on those before it.
func commands() []command {
	return []command{
		{name: "Version", line: "version", want: `Server Version: v1\.36`},
		{name: "APIResources", line: "api-resources", want: `deployments +deploy +apps/v1 +true +Deployment`},
		{name: "APIVersions", line: "api-versions", want: `(?m)^apps/v1$`},
		{name: "CanI", line: "auth can-i create deployments", want: "yes"},
		{name: "WhoAmI", line: "auth whoami", want: "system:authenticated"},
		{name: "Namespaces", line: "get namespaces", want: `(?m)^default +Active`},
		{name: "ExplainBuiltIn", line: "explain deployment.spec.replicas", want: "Number of desired pods"},
		{name: "Diff", line: "diff -f testdata/web.yaml", want: `\+kind: Deployment`, fails: true},
		{name: "ApplyMisspelt", line: "apply -f testdata/misspelt-web.yaml",
			want: `strict decoding error: unknown field "spec.replicass"`, fails: true},
		{name: "ApplyDryRun", line: "apply -f testdata/web.yaml --dry-run=server",
			want: `web created \(server dry run\)`},
		{name: "Apply", line: "apply -f testdata/web.yaml",
			want: "deployment.apps/web created\nconfigmap/settings created"},
		{name: "ApplyAgain", line: "apply -f testdata/web.yaml", want: "web unchanged\nconfigmap/settings unchanged"},
		{name: "ApplyChanged", line: "apply -f testdata/changed-web.yaml",
			want: "web unchanged\nconfigmap/settings configured"},
		{name: "DiffChanged", line: "diff -f testdata/web.yaml", want: `(?s)-  color: green.*\+  color: blue`,
			fails: true},
		{name: "ApplyServerSide", line: "apply --server-side --force-conflicts -f testdata/web.yaml",
			want: "web serverside-applied\nconfigmap/settings serverside-applied"},
		{name: "ApplyServerSideConflict",
			line: "apply --server-side --field-manager=other -f testdata/changed-web.yaml",
			want: `conflict with "kubectl": .data.color`, fails: true},
		{name: "GetTable", line: "get deployments", want: `(?m)^web +0/1 +0 +0 `},
		{name: "GetWide", line: "get deployments -o wide", want: `web +web:1 +app=web`},
		{name: "GetYAML", line: "get configmap settings -o yaml", want: "color: blue"},
		{name: "GetSelector", line: "get configmaps -l set=one -o name", want: "^configmap/settings\n$"},
		{name: "GetFieldSelector", line: "get configmaps --field-selector metadata.name=none",
			want: "No resources found"},
		{name: "GetChunks", line: "get all --chunk-size=1", want: "deployment.apps/web"},
		{name: "GetRaw", line: "get --raw /readyz", want: "ok"},
		{name: "Describe", line: "describe deployment web", want: `Replicas: +1 desired`},
		{name: "Label", line: "label configmap settings tier=a", want: "labeled"},
		{name: "Annotate", line: "annotate configmap settings note=a", want: "annotated"},
		{name: "PatchMerge", line: `patch configmap settings --type=merge -p {"data":{"size":"1"}}`, want: "patched"},
		{name: "PatchJSON", line: `patch configmap settings --type=json -p [{"op":"add","path":"/data/n","value":"2"}]`,
			want: "patched"},
		{name: "PatchStrategic", line: `patch deployment web -p {"spec":{"template":{"spec":{"containers":[` +
			`{"name":"web","env":[{"name":"A","value":"b"}]}]}}}}`, want: "patched"},
		{name: "PatchResult", line: "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}",
			want: "^web:1$"},
		{name: "Edit", line: "edit configmap settings", editor: "sed -i s/blue/red/", want: "edited"},
		{name: "Edited", line: "get configmap settings -o jsonpath={.data.color}", want: "^red$"},
		{name: "Scale", line: "scale deployment web --replicas=3", want: "scaled"},
		{name: "ScaleCurrent", line: "scale deployment web --current-replicas=9 --replicas=4", fails: true,
			want: "Expected replicas to be 9, was 3"},
		{name: "SetImage", line: "set image deployment/web web=web:2", want: "image updated"},
		{name: "Create", line: "create configmap made --from-literal=a=b", want: "created"},
		{name: "CreateAgain", line: "create configmap made --from-literal=a=b", want: "already exists", fails: true},
		{name: "Replace", line: "replace -f testdata/changed-web.yaml", want: "configmap/settings replaced"},
		{name: "WaitJSONPath", line: "wait configmap/settings --for=jsonpath={.data.color}=green --timeout=30s",
			want: "condition met"},
		{name: "ServiceAccount", line: "create serviceaccount robot", want: "created"},
		{name: "Token", line: "create token robot", want: `^[\w-]+\.[\w-]+\.[\w-]+\n?$`},
		{name: "Expose", line: "expose deployment web --port=80", want: "exposed"},
		{name: "Services", line: "get services web", want: `web +ClusterIP`},
		{name: "Job", line: "create job once --image=x", want: "created"},
		{name: "Jobs", line: "get jobs", want: `once +Running +0/1`, apart: noControllers},
		{name: "CronJob", line: "create cronjob daily --image=x --schedule=@daily", want: "created"},
		{name: "CronJobs", line: "get cronjobs", want: `daily +@daily +<none> +False +0`},
		{name: "DescribeCronJob", line: "describe cronjob daily", want: `Suspend: +False`},
		{name: "Define", line: "apply -f testdata/crd.yaml", want: "databases.clients.example.org created"},
		{name: "WaitEstablished",
			line: "wait crd/databases.clients.example.org --for=condition=Established --timeout=60s",
			want: "condition met"},
		{name: "CreateCustom", line: "apply -f testdata/database.yaml", want: "main created"},
		{name: "CustomMisspelt", line: "apply -f testdata/misspelt-database.yaml",
			want: `unknown field "spec.enginee"`, fails: true},
		{name: "CustomInvalid", line: `patch dbs main --type=merge -p {"spec":{"engine":"oracle"}}`, fails: true,
			want: `spec.engine: Unsupported value: "oracle": supported values: "mysql", "postgres"`},
		{name: "CustomColumns", line: "get dbs", want: `NAME +ENGINE\nmain +postgres`},
		{name: "CustomExplain", line: "explain database.spec.engine", want: "The product that serves the data"},
		{name: "CustomScale", line: "scale database main --replicas=2", want: "scaled"},
		{name: "CustomStatus", line: `patch dbs main --subresource=status --type=merge -p {"status":{"phase":"up"}}`,
			want: "patched"},
		{name: "CustomWait", line: "wait dbs/main --for=jsonpath={.status.phase}=up --timeout=30s",
			want: "condition met"},
		{name: "DeleteCustom", line: "delete dbs main", want: "deleted"},
		{name: "Prune", line: "apply --prune -l set=one -f testdata/web.yaml", want: "configured|unchanged|pruned"},
		{name: "Delete", line: "delete configmap made", want: "deleted"},
		{name: "DeleteMissing", line: "delete configmap made", want: "NotFound", fails: true},
		{name: "DeleteAll", line: "delete configmaps -l set=one", want: "deleted"},
		{name: "Undefine", line: "delete crd databases.clients.example.org", want: "deleted"},
		{name: "UnknownKind", line: "get databases", want: "the server (could not find|doesn't have)", fails: true},
		{name: "MissingNamespace", line: "create configmap a -n nowhere", want: `namespaces "nowhere" not found`,
			fails: true},
		{name: "CreateNamespace", line: "create namespace full", want: "created"},
		{name: "FillNamespace", line: "create configmap a -n full", want: "created"},
		{name: "DeleteNamespace", line: "delete namespace full", want: "deleted", apart: noControllers},
		{name: "EmptiedNamespace", line: "get configmap a -n full", want: "NotFound", fails: true,
			apart: noControllers},
		{name: "Run", line: "run one --image=x", want: "created", apart: "a service account is missing"},
		{name: "Logs", line: "logs one", want: "runs no containers", fails: true, apart: "the words are ours"},
		{name: "Exec", line: "exec one -- date", want: "runs no containers", fails: true, apart: "the words are ours"},
		{name: "Top", line: "top pods", want: "Metrics API not available", fails: true},
	}
}

func TestKubectlOnTheDevelopmentCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cluster, err := devcluster.Start(ctx, devcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := cluster.Wait(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) { c.run(t, cluster.Kubeconfig()) })
	}
}

// The same table holds for the real server, so that it says what kubectl users are used to.
func TestKubectlOnTheRealServer(t *testing.T) {
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets(t), ControlPlaneStartTimeout: 5 * time.Minute,
		ControlPlaneStopTimeout: 5 * time.Minute,
	}
	if _, err := environment.Start(); err != nil {
		t.Fatalf("starting etcd and kube-apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if c.apart == "" {
			t.Run(c.name, func(t *testing.T) { c.run(t, kubeconfig) })
		}
	}
}

func assets(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	return folder
}

func (c command) run(t *testing.T, kubeconfig string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(assets(t), "kubectl"), strings.Fields(c.line)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), "EDITOR="+c.editor)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if (err != nil) != c.fails {
		t.Errorf("kubectl %s: %v, want an error: %t\n%s", c.line, err, c.fails, out.String())
	}
	if !regexp.MustCompile(c.want).MatchString(out.String()) {
		t.Errorf("kubectl %s: got\n%swant a match of %s", c.line, out.String(), c.want)
	}
}

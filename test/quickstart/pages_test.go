package quickstart_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

const firstPage = "docs/getting-started.md"

// page is the situation before the commands of a page. By default, the reader has the folder of the first page, with a
// Website on the cluster, and the first operator is installed as operator and my-operator.
type page struct {
	// folder is a folder of the repository whose manifests the reader has, too.
	folder string
	// program is the folder of another program that is installed, or the page that has it.
	program string
	// given are commands before those of the page, and handled is a text in the log that follows from them.
	given, handled string
	// started is a text in the log of an operator that has started; by default, that it has.
	started string
	// stops is a text of the block before which the operator ends.
	stops string
	// before are commands that run before the block with the text of the key.
	before map[string]string
	// shows is set if the page shows the output of its commands in blocks without a language.
	shows bool
	// printed are texts in the output of the commands.
	printed []string
	// logged are texts in the log of the operator that was started last.
	logged []string
	// then checks more.
	then func(ctx context.Context, r *reader)
}

// special are the pages whose commands need something. All other pages with commands need nothing else.
var special = map[string]page{
	"docs/admission-reference.md": {
		program: "test/quickstart/testdata/admission", started: "Wrote a webhook configuration",
		given:   "cp \"$REPOSITORY/test/quickstart/testdata/review.json\" .\noperator run -A",
		stops:   "operator webhooks",
		printed: []string{`"allowed":true`, "k8s.io/databases.example.org configured"},
	},
	"docs/api-design.md": {
		// An object was stored before the minimum was raised.
		given: "rm -r api/v1\nmkdir api/v1\ncp \"$REPOSITORY/examples/tasks/api/v1/backup_types.go\" api/v1/\n" +
			"cp \"$REPOSITORY/test/quickstart/testdata/backup.yaml\" .\n" +
			"sed 's/minimum: 0/minimum: -1/' \"$REPOSITORY/examples/tasks/api/crd.yaml\" | kubectl apply -f -\n" +
			"kubectl wait --for=condition=Established crd/backups.backups.example.org\n" +
			"kubectl apply -f backup.yaml\n" +
			"kubectl patch backup daily --type merge -p '{\"spec\":{\"keep\":-1}}'",
		before: map[string]string{"storedVersions": "kubectl patch crd backups.backups.example.org --type json -p '[" +
			`{"op":"copy","from":"/spec/versions/0","path":"/spec/versions/1"},` +
			`{"op":"replace","path":"/spec/versions/1/name","value":"v2"},` +
			`{"op":"replace","path":"/spec/versions/0/storage","value":false}]'`},
		printed: []string{
			"BackupSpec is the desired state", "backup.backups.example.org/daily unchanged (server dry run)",
			"spec.keep", "backup.backups.example.org/daily replaced", `["v1","v2"]`,
		},
	},
	"docs/certificates.md": {
		program: "test/quickstart/testdata/admission", started: "Wrote a webhook configuration",
		given: "cp \"$REPOSITORY/test/quickstart/testdata/review.json\" .\n" +
			"kubectl create namespace databases-system\nexport SERVICE=databases-system/webhook\noperator run -A",
		before: map[string]string{
			"curl": "unset SERVICE\noperator run -A",
		},
		printed: []string{
			"caBundle", "DNS:webhook.databases-system.svc", `secret "webhook-certificate" deleted`,
			"secret/webhook-tls created", "secret/webhook-tls configured",
			`"allowed":true`,
		},
	},
	"docs/command-line.md": {
		given: "kubectl apply -f \"$REPOSITORY/config/crd/peerings.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/clusterkopfpeerings.kopf.dev\n" +
			"kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/peering.yaml\"",
	},
	"docs/debugging.md": {
		program: "examples/lessons/10-daemons", started: "[default/home] Started",
		printed: []string{`"handler":"watch"`},
	},
	"docs/deployment.md": {
		folder: "examples/getting-started", then: runDeployed,
		printed: []string{"deployment.apps/websites-operator created"},
	},
	"docs/explain.md": {
		program: "examples/lessons/07-filters", shows: true, handled: "[default/home] The title is longer now",
		// The patch must be an update, so the creation is handled before.
		given: "my-operator run -A\n" +
			"kubectl wait website home --for=jsonpath=" +
			`'{.metadata.annotations.websites\.example\.org/last-handled-configuration}'` + "\n" +
			"kubectl patch website home --type merge -p '{\"spec\":{\"title\":\"Hello again\"}}'",
	},
	"docs/health.md":  {started: "Handler succeeded", printed: []string{"ok", "{}"}},
	"docs/metrics.md": {started: "Handler succeeded", printed: []string{"kopf_handler_attempts_total"}},
	"docs/not-called.md": {
		program: "examples/tasks/not-called", given: "my-operator run -A", handled: "the domain is reserved",
		printed: []string{"website.websites.example.org/home annotated"},
	},
	"docs/peering.md": {
		given: "export KOPF_RUN_PEERING=databases.example.org\ncp \"$REPOSITORY/config/crd/peerings.yaml\" .\n" +
			"sed 's/name: default/name: databases.example.org/' " +
			"\"$REPOSITORY/test/quickstart/testdata/peering.yaml\" >peering.yaml",
		printed: []string{"priority: 100"},
	},
	"docs/porting.md": {
		program: "docs/porting.md", started: "Created kopf-example-1 with spec",
		given: "kubectl apply -f \"$REPOSITORY/config/crd/kopfexamples.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/kopfexamples.kopf.dev\n" +
			"kubectl apply -f \"$REPOSITORY/examples/01-minimal/object.yaml\"\n" +
			"my-operator run -A --verbose\n" +
			"kubectl patch kopfexample kopf-example-1 --type merge -p '{\"spec\":{\"field\":\"other\"}}'\n" +
			"kubectl delete kopfexample kopf-example-1",
		logged: []string{"value -> other", "Cleaning up"},
	},
	"docs/renaming.md": {
		given:   installDatabases + "\nkubectl annotate database orders kopf.zalando.org/create_fn='{}'",
		printed: []string{"1\n"},
	},
	"docs/replacing.md": {
		program: "test/quickstart/testdata/databases",
		given: installDatabases + "\ncp program/main.go .\n" +
			"kubectl annotate database orders kopf.zalando.org/create_fn-",
		printed: []string{"kopf.zalando.org/last-handled-configuration", "\n0\n"},
	},
	"docs/secrets.md": {
		given: "kubectl create namespace logins-system\n" +
			"kubectl apply -f \"$REPOSITORY/examples/tasks/secrets/crd.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/logins.example.org\n" +
			"kubectl apply -f \"$REPOSITORY/examples/tasks/secrets/login.yaml\"",
		printed: []string{"secret/digest-key created", "login.example.org/ada annotated"},
	},
	"docs/testing-reference.md": {
		given: "mkdir -p internal/controller\n" +
			"cp \"$REPOSITORY/test/quickstart/testdata/orders_test.go\" internal/controller/",
	},
	"docs/troubleshooting.md": {
		given: "my-operator run -A", handled: "Handler succeeded", printed: []string{"publish", "finalizers"},
		stops: "--type json",
		before: map[string]string{
			"--type json": "kubectl patch website home --type merge -p " +
				`'{"metadata":{"finalizers":["websites.example.org/finalizer"]}}'`,
		},
	},
	"docs/tutorial.md": {
		folder: "examples/ephemeral-volume-claim", program: "examples/ephemeral-volume-claim",
		given:   "my-operator run -A",
		printed: []string{"ephemeralvolumeclaim.kopf.dev/my-claim created", "patched", "modified"}, then: runSketch,
	},
}

const installDatabases = "kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/databases/crd.yaml\"\n" +
	"kubectl wait --for=condition=Established crd/databases.example.org\n" +
	"kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/databases/object.yaml\""

// TestPages runs the commands of all pages, each page in a folder of its own. The cluster is that of the first page.
func TestPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := newReader(t, "", devcluster, "webhooks/tunnels/ngrok")
	r.followFirst(ctx)
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		name := "docs/" + filepath.Base(file)
		p, isSpecial := special[name]
		document := readFile(t, name)
		if name == firstPage || !isSpecial && !hasCommands(document) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) { r.at(t).follow(ctx, document, p) })
	}
}

// TestLogin plays the session of an operator that logs in itself.
func TestLogin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := newReader(t)
	const folder = "examples/18-login"
	r.run(ctx, "go build -C \"$REPOSITORY/"+folder+"\" -o \"$GOBIN/login\" .\n"+
		"(cd \"$REPOSITORY/"+devcluster+"\" && GOWORK=$PWD/go.work go install ./cmd/devcluster)\n"+
		"cp \"$REPOSITORY/"+folder+"/object.yaml\" .")
	operator := r.serve(ctx, "devcluster --load \"$REPOSITORY/config/crd/kopfexamples.yaml\" -- "+
		"login run -A --log-format=plain", "")
	r.play(ctx, operator, readFile(t, folder+"/session.txt"))
}

func hasCommands(document string) bool {
	return slices.ContainsFunc(documents.Blocks(document), func(b documents.Block) bool {
		return b.IsCommands() && b.Needs() == ""
	})
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

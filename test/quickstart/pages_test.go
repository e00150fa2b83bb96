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
	// setupCommands are commands before those of the page, and handled is a text in the log that follows from them.
	setupCommands, setupLogText string
	// startedText is a text in the log of an operator that has started; by default, that it has.
	startedText string
	// stopText is a text of the block before which the operator ends.
	stopText string
	// commandsBefore are commands that run before the block with the text of the key.
	commandsBefore map[string]string
	// showsOutput is set if the page shows the output of its commands in blocks without a language.
	showsOutput bool
	// wantOutput are texts in the output of the commands.
	wantOutput []string
	// wantLog are texts in the log of the operator that was started last.
	wantLog []string
	// check checks more.
	check func(ctx context.Context, r *reader)
}

// pageSetups are the pages whose commands need something. All other pages with commands need nothing else.
var pageSetups = map[string]page{
	"docs/admission-reference.md": {
		program: "test/quickstart/testdata/admission", startedText: "Wrote a webhook configuration",
		setupCommands: "cp \"$REPOSITORY/test/quickstart/testdata/review.json\" .\n" +
			"kubectl get namespace databases-system || kubectl create namespace databases-system\noperator run -A",
		stopText:   "operator manifests",
		wantOutput: []string{`"allowed":true`, "service/webhook created"},
	},
	"docs/api-design.md": {
		// An object was stored before the minimum was raised.
		setupCommands: "rm -r api/v1\nmkdir api/v1\n" +
			"cp \"$REPOSITORY/examples/tasks/api/v1/backup_types.go\" api/v1/\n" +
			"cp \"$REPOSITORY/test/quickstart/testdata/backup.yaml\" .\n" +
			"sed 's/minimum: 0/minimum: -1/' \"$REPOSITORY/examples/tasks/api/crd.yaml\" | kubectl apply -f -\n" +
			"kubectl wait --for=condition=Established crd/backups.backups.example.org\n" +
			"kubectl apply -f backup.yaml\n" +
			"kubectl patch backup daily --type merge -p '{\"spec\":{\"keep\":-1}}'",
		commandsBefore: map[string]string{"storedVersions": "kubectl patch crd backups.backups.example.org " +
			"--type json -p '[" +
			`{"op":"copy","from":"/spec/versions/0","path":"/spec/versions/1"},` +
			`{"op":"replace","path":"/spec/versions/1/name","value":"v2"},` +
			`{"op":"replace","path":"/spec/versions/0/storage","value":false}]'`},
		wantOutput: []string{
			"BackupSpec is the desired state", "backup.backups.example.org/daily unchanged (server dry run)",
			"spec.keep", "backup.backups.example.org/daily replaced", `["v1","v2"]`,
		},
	},
	"docs/certificates.md": {
		program: "test/quickstart/testdata/admission", startedText: "Wrote a webhook configuration",
		setupCommands: "cp \"$REPOSITORY/test/quickstart/testdata/review.json\" .\n" +
			"kubectl get namespace databases-system || kubectl create namespace databases-system\n" +
			"export SERVICE=databases-system/webhook\noperator run -A",
		commandsBefore: map[string]string{
			"curl": "unset SERVICE\noperator run -A",
		},
		wantOutput: []string{
			"caBundle", "DNS:webhook.databases-system.svc", `secret "webhook-certificate" deleted`,
			"secret/webhook-tls created", "secret/webhook-tls configured",
			`"allowed":true`,
		},
	},
	"docs/command-line.md": {
		setupCommands: "kubectl apply -f \"$REPOSITORY/config/crd/peerings.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/clusterkopfpeerings.kopf.dev\n" +
			"kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/peering.yaml\"",
	},
	"docs/control.md": {
		setupCommands: "my-operator run -A", setupLogText: "Published the page",
		wantOutput: []string{"website"},
	},
	"docs/debugging.md": {
		program: "examples/lessons/10-daemons", startedText: "[default/home] Started",
		wantOutput: []string{`"handler":"watch"`},
	},
	"docs/deployment.md": {
		folder: "examples/getting-started", check: runDeployed,
		wantOutput: []string{"deployment.apps/websites-operator "},
	},
	"docs/explain.md": {
		program: "examples/lessons/07-filters", showsOutput: true,
		setupLogText: "[default/home] The title is longer now",
		// The patch must be an update, so the creation is handled before.
		setupCommands: "my-operator run -A\n" +
			"kubectl wait website home --for=jsonpath=" +
			`'{.metadata.annotations.websites\.example\.org/last-handled-configuration}'` + "\n" +
			"kubectl patch website home --type merge -p '{\"spec\":{\"title\":\"Hello again\"}}'",
	},
	"docs/health.md":  {startedText: "Handler succeeded", wantOutput: []string{"ok", "{}"}},
	"docs/metrics.md": {startedText: "Handler succeeded", wantOutput: []string{"kopf_handler_attempts_total"}},
	"docs/not-called.md": {
		program: "examples/tasks/not-called", setupCommands: "my-operator run -A",
		setupLogText: "the domain is reserved",
		wantOutput:   []string{"website.websites.example.org/home annotated"},
	},
	"docs/peering.md": {
		setupCommands: "export KOPF_RUN_PEERING=databases.example.org\n" +
			"cp \"$REPOSITORY/config/crd/peerings.yaml\" .\n" +
			"sed 's/name: default/name: databases.example.org/' " +
			"\"$REPOSITORY/test/quickstart/testdata/peering.yaml\" >peering.yaml",
		wantOutput: []string{"priority: 100"},
	},
	"docs/porting.md": {
		program: "docs/porting.md", startedText: "Created kopf-example-1 with spec",
		setupCommands: "kubectl apply -f \"$REPOSITORY/config/crd/kopfexamples.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/kopfexamples.kopf.dev\n" +
			"kubectl apply -f \"$REPOSITORY/examples/01-minimal/object.yaml\"\n" +
			"my-operator run -A --verbose\n" +
			"kubectl patch kopfexample kopf-example-1 --type merge -p '{\"spec\":{\"field\":\"other\"}}'\n" +
			"kubectl delete kopfexample kopf-example-1",
		wantLog: []string{"value -> other", "Cleaning up"},
	},
	"docs/renaming.md": {
		setupCommands: installDatabases + "\nkubectl annotate database orders kopf.zalando.org/create_fn='{}'",
		wantOutput:    []string{"1\n"},
	},
	"docs/replacing.md": {
		program: "test/quickstart/testdata/databases",
		setupCommands: installDatabases + "\ncp program/main.go .\n" +
			"kubectl annotate database orders kopf.zalando.org/create_fn-",
		wantOutput: []string{"kopf.zalando.org/last-handled-configuration", "\n0\n"},
	},
	"docs/secrets.md": {
		setupCommands: "kubectl create namespace logins-system\n" +
			"kubectl apply -f \"$REPOSITORY/examples/tasks/secrets/crd.yaml\"\n" +
			"kubectl wait --for=condition=Established crd/logins.example.org\n" +
			"kubectl apply -f \"$REPOSITORY/examples/tasks/secrets/login.yaml\"",
		wantOutput: []string{"secret/digest-key created", "login.example.org/ada annotated"},
	},
	"docs/sharding.md": {
		program:       "examples/tasks/sharding",
		setupCommands: "kubectl create namespace prod\nmy-operator run -n prod",
		setupLogText:  "Acquired ranges",
		wantOutput:    []string{"1 replica shares 16 ranges"},
	},
	"docs/testing-reference.md": {
		setupCommands: "mkdir -p internal/controller\n" +
			"cp \"$REPOSITORY/test/quickstart/testdata/orders_test.go\" internal/controller/",
	},
	"docs/troubleshooting.md": {
		setupCommands: "my-operator run -A", setupLogText: "Handler succeeded",
		wantOutput: []string{"publish", "finalizers"},
		stopText:   "--type json",
		commandsBefore: map[string]string{
			"--type json": "kubectl patch website home --type merge -p " +
				`'{"metadata":{"finalizers":["websites.example.org/finalizer"]}}'`,
		},
	},
	"docs/tutorial.md": {
		folder: "examples/ephemeral-volume-claim", program: "examples/ephemeral-volume-claim",
		setupCommands: "my-operator run -A",
		wantOutput:    []string{"ephemeralvolumeclaim.kopf.dev/my-claim created", "patched", "modified"},
		check:         runSketch,
	},
}

const installDatabases = "kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/databases/crd.yaml\"\n" +
	"kubectl wait --for=condition=Established crd/databases.example.org\n" +
	"kubectl apply -f \"$REPOSITORY/test/quickstart/testdata/databases/object.yaml\""

// TestPages runs the commands of all pages, each page in a folder of its own. The cluster is that of the first page.
func TestPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	r := newReader(t, "", devcluster, "webhooks/tunnels/ngrok")
	r.followFirst(ctx)
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		name := "docs/" + filepath.Base(file)
		p, isSpecial := pageSetups[name]
		document := readFile(t, name)
		if name == firstPage || !isSpecial && !hasCommands(document) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) { r.at(t).follow(ctx, document, p) })
	}
}

// TestLogin plays the session of an operator that logs in itself.
func TestLogin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
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

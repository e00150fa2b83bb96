package documents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// snippetImports are the packages that snippets use, by the names that they have there.
var snippetImports = []string{
	`"cmp"`, `"context"`, `"errors"`, `"fmt"`, `"log/slog"`, `"math/rand/v2"`, `"net/http"`, `"os"`, `"regexp"`,
	`"strconv"`, `"sync"`, `"testing"`, `"testing/synctest"`, `"time"`,
	`metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`, `"sigs.k8s.io/controller-runtime/pkg/client"`,
	`"sigs.k8s.io/controller-runtime/pkg/client/fake"`,
	`"github.com/kopf-runtime/kopf-runtime/facade/facadetest"`,
	`"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"`,
	`"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"`,
	`"k8s.io/apimachinery/pkg/runtime"`,
	`admissionregistrationv1 "k8s.io/api/admissionregistration/v1"`,
	`appsv1 "k8s.io/api/apps/v1"`, `corev1 "k8s.io/api/core/v1"`, `"github.com/go-logr/logr"`,
	`"k8s.io/client-go/rest"`, `ctrl "sigs.k8s.io/controller-runtime"`, `"go.opentelemetry.io/otel/trace"`,
	`sdktrace "go.opentelemetry.io/otel/sdk/trace"`,
	`"k8s.io/client-go/tools/clientcmd"`, `"sigs.k8s.io/controller-runtime/pkg/log"`,
	`metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"`,
	`"sigs.k8s.io/controller-runtime/pkg/healthz"`, `"sigs.k8s.io/controller-runtime/pkg/manager"`,
	`"sigs.k8s.io/controller-runtime/pkg/webhook"`,
	`v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"`,
	`kopf "github.com/kopf-runtime/kopf-runtime/facade"`,
	`"github.com/kopf-runtime/kopf-runtime/storage/diff"`,
	`"github.com/kopf-runtime/kopf-runtime/storage/diffbase"`,
	`"github.com/kopf-runtime/kopf-runtime/storage/progress"`,
	`"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"`,
}

// hiddenDeclarations has the declarations that the snippets of a page use without showing them.
var hiddenDeclarations = map[string]string{
	"README.md": "func createServer(context.Context, string) (string, error) { return \"\", nil }\n" +
		"func provision(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n" +
		"func backup(context.Context, *kopf.Task[*v1.Database]) error { return nil }\n",
	"docs/activities-reference.md": "func (o *operator) create(" +
		"context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil }\n",
	"docs/admission-reference.md": "func openMyTunnel(context.Context, string) (string, error) {" +
		" return \"\", nil }\n",
	"docs/children-reference.md": "func ensureStorage(" +
		"context.Context, *kopf.Change[*v1.Database]) error { return nil }\n" +
		"func ensureServer(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n" +
		"func serverFor(*v1.Database) *appsv1.Deployment { return nil }\n" +
		"func loginFor(*v1.Database) *corev1.Secret { return nil }\n" +
		"func backupFor(*v1.Database) *kopf.Unstructured { return nil }\n" +
		"func volumeFor(*v1.Database) *corev1.PersistentVolumeClaim { return nil }\n",
	"docs/daemons.md": "var lines chan string\nfunc handleLine(context.Context, string) error { return nil }\n",
	"docs/deletion.md": "var databases, things kopf.Selection[*v1.Database]\n" +
		"func notify(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n" +
		"func drop(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n" +
		"func poll(context.Context, *kopf.Task[*v1.Database]) error { return nil }\n",
	"docs/fields.md":    "func move(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n",
	"docs/timers.md":    "func sendReport(context.Context, string) error { return nil }\n",
	"docs/tutorial.md":  "var claimFor func(*kopf.Unstructured) (*corev1.PersistentVolumeClaim, error)\n",
	"docs/embedding.md": "var (\n\tctx context.Context\n\tconfig *rest.Config\n\tlogger logr.Logger\n)\n",
	"docs/health.md": "var pool interface{ Ping(context.Context) (string, error) }\n" +
		"var myIndex *kopf.Index[string, string]\n",
	"docs/listeners.md": "var ctx context.Context\n",
	"docs/logging.md": "var (\n\tctx context.Context\n\tconfig *rest.Config\n\thandler slog.Handler\n" +
		"\told, size, free int\n)\n",
	"docs/peering.md": "var config *rest.Config\n",
	"docs/porting.md": "type pool struct{}\nfunc (*pool) Close() error { return nil }\n" +
		"func connect(context.Context) (*pool, error) { return nil, nil }\n" +
		"func check(context.Context, *v1.Database) {}\nvar errBusy error\n" +
		"func createServer(context.Context, string) (string, error) { return \"\", nil }\n" +
		"func created(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n",
	"docs/renaming.md": "var databases kopf.Selection[*v1.Database]\n" +
		"func provision(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n",
	"docs/storages.md": "var (\n\tsettings kopf.Settings\n\tnewBase, oldBase diffbase.Storage\n" +
		"\tnewProgress, oldProgress progress.Storage\n)\n",
	"docs/testing-reference.md": "type (\n\tchange = kopf.Change[*v1.Database]\n\tfakeCloud struct {\n\t\terr error\n" +
		"\t\tvolumes map[string]bool\n\t}\n\tcloudClient struct {\n\t\tlife *explorer.Life\n" +
		"\t\tcloud *fakeCloud\n\t}\n" +
		"\tusage struct{ Warned bool }\n)\n" +
		"func provision(context.Context, *change) error { return nil }\n" +
		"func release(context.Context, *change) error { return nil }\n" +
		"func provisionIn(context.Context, *change, *fakeCloud) error { return nil }\n" +
		"var scheme *runtime.Scheme\nfunc newOperator() *kopf.Operator { return nil }\n" +
		"func newFakeCloud() *fakeCloud { return nil }\n" +
		"func (*fakeCloud) calledBy(*explorer.Life) *cloudClient { return nil }\n" +
		"func newOperatorWith(*cloudClient) *kopf.Operator { return nil }\n" +
		"func serverWith(testing.TB, string) *memapi.Server { return nil }\n" +
		"func expose(context.Context, *change) error { return nil }\n" +
		"func watch(context.Context, *kopf.Task[*v1.Database]) error { return nil }\n" +
		"func quota(*kopf.Index[string, string], *kopf.Memo[usage]) kopf.AdmissionFunc[*v1.Database] {" +
		" return nil }\n",
	"docs/traces.md": "var (\n\texporter sdktrace.SpanExporter\n\tprovider trace.TracerProvider\n" +
		"\ttracer trace.Tracer\n)\nfunc findHost(context.Context, *v1.Database) error { return nil }\n" +
		"func reserve(context.Context, string) error { return nil }\n",
	"docs/watching.md": "var op *kopf.Operator\n" +
		"func logEvent(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) error { return nil }\n" +
		"func zoneOf(context.Context, *corev1.ConfigMap) (map[string]string, error) { return nil, nil }\n",
}

// TestSnippets compiles all Go of the README and of docs, except quotes of files: programs with their own imports,
// other blocks with those above and the declarations that the page leaves out.
func TestSnippets(t *testing.T) {
	compiler, err := documents.NewCompiler(root, snippetImports...)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("found %d pages: %v", len(pages), err)
	}
	found := 0
	for _, page := range append(pages, root+"/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(page), root+"/")
		for _, snippet := range documents.Snippets(string(text)) {
			found++
			own := hiddenDeclarations[name]
			if strings.Contains(own, "(o *operator)") && !strings.Contains(snippet.Text, "type operator ") {
				own = "func askVault(context.Context) (string, error) { return \"\", nil }\n"
			}
			err := compiler.Check(snippet, own)
			if snippet.IsProgram() {
				err = compiler.CheckProgram(snippet.Text)
			}
			if err != nil {
				t.Errorf("%s:%d: %v", name, snippet.Line, err)
			}
		}
	}
	if found < 90 {
		t.Errorf("found %d snippets: the test would pass for nothing", found)
	}
}

func TestSnippetsThatAreWrong(t *testing.T) {
	compiler, err := documents.NewCompiler(root, snippetImports...)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"op.OnStart(\"a\", nil)":              "op.OnStart undefined",
		"x := 1":                              "",
		"func f() int { return \"\" }":        "cannot use",
		"if {":                                "missing condition",
		"op.OnStartup(\"a\", nil, kopf.ASAP)": "does not implement",
	} {
		document := "# A\n\n```go\n" + text + "\n```\n"
		all := documents.Snippets(document)
		if len(all) != 1 || all[0].Line != 4 {
			t.Fatalf("%s: found %v", text, all)
		}
		err := compiler.Check(all[0], "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

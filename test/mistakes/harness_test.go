package mistakes_test

import (
	"bytes"
	"context"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

var update = flag.Bool("update", false, "rewrite docs/mistakes.md")

// Own is a type that no scheme knows.
type Own struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject makes it an object.
func (o *Own) DeepCopyObject() runtime.Object {
	own := *o
	return &own
}

func ignore(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil }

// options are those of a manager on a server in memory.
func options(log logr.Logger) ctrl.Options {
	return ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: log,
		Scheme: clientgoscheme.Scheme,
	}
}

// server serves deployments.
func server() *memapi.Server {
	server := memapi.New()
	server.Install(memapi.Resource{
		Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true,
		StatusSubresource: true, Plain: true,
	})
	return server
}

// setUp gives what the set-up of an operator says.
func setUp(t *testing.T, op *kopf.Operator) string {
	t.Helper()
	m, err := ctrl.NewManager(memapi.Config(server()), options(logr.Discard()))
	if err != nil {
		t.Fatal(err)
	}
	if err := op.SetupWithManager(m); err != nil {
		if !strings.Contains(err.Error(), logging.ManualMistakes) {
			t.Errorf("the error does not refer to the page with the mistakes: %v", err)
		}
		return withoutLocations(err.Error())
	}
	return ""
}

// sourceLocation is where a mistake is; it changes with every line above it.
var sourceLocation = regexp.MustCompile(`mistakes/\w+_test\.go:\d+`)

func withoutLocations(text string) string {
	text = strings.ReplaceAll(sourceLocation.ReplaceAllString(text, "main.go:7"), "; see "+logging.ManualMistakes, "")
	lines := strings.Split(strings.TrimPrefix(text, `setting up operator "demo.example.org": `), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "main.go:7: ")
	}
	return strings.Join(lines, "\n")
}

// run runs an operator with one handler for creations on one new object, for less than the default backoff, and gives
// what its log says of the handler.
func run(t *testing.T, fn kopf.ChangeFunc[*deployment]) string {
	t.Helper()
	log := newHandlerLog()
	synctest.Test(t, func(t *testing.T) {
		server := server()
		m, err := ctrl.NewManager(memapi.Config(server), options(logr.New(log)))
		if err != nil {
			t.Fatal(err)
		}
		op := kopf.New("demo.example.org")
		kopf.For(op, &deployment{}).OnCreate("roll", fn)
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Start(ctx) }()
		users, err := client.New(memapi.Config(server), client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		if err := users.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{}},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second) // virtual: called, called again after a second, and not after the default minute
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return log.lines.String()
}

// execute gives what a command line says.
func execute(t *testing.T, args []string) string {
	t.Helper()
	op := kopf.New("demo.example.org")
	kopf.For(op, &deployment{}).OnCreate("roll", roll)
	cmd := op.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Errorf("%s: there is no error", args)
	}
	return strings.ReplaceAll(out.String(), filepath.Base(os.Args[0]), "operator")
}

// sources gives the code of the functions in the lists of a file, by the names beside them.
func sources(t *testing.T, file string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		one, ok := node.(*ast.CompositeLit)
		if !ok || len(one.Elts) != 2 {
			return true
		}
		title, named := one.Elts[0].(*ast.BasicLit)
		fn, isFunc := one.Elts[1].(*ast.FuncLit)
		if !named || !isFunc {
			return true
		}
		var lines []string
		for _, statement := range fn.Body.List {
			var text bytes.Buffer
			if err := printer.Fprint(&text, files, statement); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.Join(strings.Fields(text.String()), " "))
		}
		name, err := strconv.Unquote(title.Value)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = strings.Join(lines, "\n")
		return true
	})
	return found
}

// read gives the text of a golden file; none if it is to be written.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

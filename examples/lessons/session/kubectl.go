package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	// namespace is that of all objects with a namespace.
	namespace = "default"
	// firstLesson has the definition and the object of the other lessons.
	firstLesson = "../../getting-started"
)

// cluster is an API server in memory with the kinds of the lessons. It runs the commands apply, patch, label, annotate,
// delete, and get with a JSON path.
type cluster struct {
	server *memapi.Server
	client client.Client
	mapper meta.RESTMapper
	output io.Writer
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{server: memapi.New()}
	for _, path := range []string{"crd.yaml", filepath.Join(firstLesson, "crd.yaml")} {
		definitions, err := memapi.Definitions(path)
		if err == nil {
			err = c.server.Define(definitions...)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	c.server.CollectGarbage(100 * time.Millisecond)
	config := memapi.Config(c.server)
	config.WarningHandler = rest.NewWarningWriter(warnings{c}, rest.WarningWriterOptions{})
	kinds := discovery.NewDiscoveryClientForConfigOrDie(config)
	found, err := restmapper.GetAPIGroupResources(kinds)
	if err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(found), kinds, nil)
	direct, err := client.New(config, client.Options{Scheme: runtime.NewScheme(), Mapper: c.mapper})
	if err != nil {
		t.Fatal(err)
	}
	c.client = client.WithFieldOwner(direct, "kubectl-patch")
	return c
}

// warnings writes to the output of the cluster, which is set later.
type warnings struct{ cluster *cluster }

func (w warnings) Write(p []byte) (int, error) { return w.cluster.output.Write(p) }

// wordPattern is a part of a command line. Quotes can begin inside of it.
var wordPattern = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

func split(line string) []string {
	words := wordPattern.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "'", "")
	}
	return words
}

// serverError is the line that kubectl prints.
func serverError(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return fmt.Sprintf("Error from server (%s): %v", reason, err)
	}
	return fmt.Sprintf("Error from server: %v", err)
}

func (c *cluster) kubectl(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	files := flags.StringP("filename", "f", "", "")
	patch := flags.StringP("patch", "p", "", "")
	output := flags.StringP("output", "o", "", "")
	subresource := flags.String("subresource", "", "")
	sortBy := flags.String("sort-by", "", "")
	flags.String("type", "", "")
	flags.Bool("overwrite", false, "") // kubectl needs it to change labels
	if err := flags.Parse(args); err != nil {
		return err
	}
	args = flags.Args()
	if args[0] == "apply" {
		return c.apply(ctx, *files)
	}
	if len(args) == 2 {
		args = append(args, "") // all objects of the kind
	}
	object, err := c.object(args[1], args[2])
	if err != nil {
		return err
	}
	switch args[0] {
	case "patch":
		return c.patch(ctx, object, *subresource, *patch)
	case "label", "annotate":
		return c.patch(ctx, object, "", metadataPatch(args[0], args[3:]))
	case "delete":
		return c.client.Delete(ctx, object)
	case "get":
		return c.print(ctx, object, strings.TrimPrefix(*output, "jsonpath="), *sortBy)
	default:
		return fmt.Errorf("kubectl %s is unknown", args[0])
	}
}

// object returns an empty object of a kind, given in any spelling that discovery has.
func (c *cluster) object(kind, name string) (*unstructured.Unstructured, error) {
	kinds, err := c.mapper.KindFor(schema.GroupVersionResource{Resource: kind})
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kinds)
	object.SetName(name)
	return object, c.setNamespace(object)
}

func (c *cluster) setNamespace(object client.Object) error {
	namespaced, err := c.client.IsObjectNamespaced(object)
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	return err
}

func (c *cluster) apply(ctx context.Context, file string) error {
	content, err := os.ReadFile(file) //nolint:gosec // the files are those of a test
	if errors.Is(err, fs.ErrNotExist) {
		content, err = os.ReadFile(filepath.Join(firstLesson, file)) //nolint:gosec // ditto
	}
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return err
		}
		if err := c.setNamespace(object); err != nil {
			return err
		}
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		err = c.client.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			err = c.patch(ctx, object, "", string(data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) patch(ctx context.Context, object client.Object, subresource, patch string) error {
	data := client.RawPatch(types.MergePatchType, []byte(patch))
	if subresource != "" {
		return c.client.SubResource(subresource).Patch(ctx, object, data)
	}
	return c.client.Patch(ctx, object, data)
}

// metadataPatch sets labels or annotations, such as "a=b", and removes others, such as "a-".
func metadataPatch(verb string, changes []string) string {
	values := map[string]any{}
	for _, change := range changes {
		if key, value, found := strings.Cut(change, "="); found {
			values[key] = value
		} else {
			values[strings.TrimSuffix(change, "-")] = nil
		}
	}
	field := map[string]string{"label": "labels", "annotate": "annotations"}[verb]
	data, _ := json.Marshal(map[string]any{"metadata": map[string]any{field: values}}) // texts can be encoded
	return string(data)
}

func (c *cluster) print(ctx context.Context, object *unstructured.Unstructured, path, sortBy string) error {
	content := object.UnstructuredContent
	var err error
	if object.GetName() != "" {
		err = c.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	} else {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(object.GroupVersionKind())
		content, err = list.UnstructuredContent, c.client.List(ctx, list)
		slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
			return strings.Compare(textAt(a, sortBy), textAt(b, sortBy))
		})
	}
	if err != nil {
		return err
	}
	parsed := jsonpath.New("kubectl").AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, content()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.output, timePattern.ReplaceAllString(strings.TrimSuffix(text.String(), "\n"), "<time>"))
	return err
}

// textAt returns the text at a path such as ".reason".
func textAt(object unstructured.Unstructured, path string) string {
	text, _, _ := unstructured.NestedString(object.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	return text
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// operatorRole turns this test program into an operator with a console: "idle" ends with its input, "labelled" when the
// object has the label of the demonstration.
const operatorRole = "DEVCLUSTER_TEST_OPERATOR"

func TestMain(m *testing.M) {
	if role := os.Getenv(operatorRole); role != "" {
		if err := operate(role, os.Args[1:]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func operate(role string, arguments []string) error {
	at := slices.Index(arguments, "--debug-bind-address")
	if at >= 0 && role != "plain" {
		listener, err := net.Listen("tcp", arguments[at+1])
		if err != nil {
			return err
		}
		go func() {
			_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/console" || !slices.Contains(arguments, "--console") {
					w.WriteHeader(http.StatusNotFound)
				}
			}))
		}()
	}
	switch role {
	case "stubborn", "parent":
		return endLater(role)
	case "failing":
		os.Exit(7)
	}
	if role != "labelled" {
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	reader, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	time.Sleep(300 * time.Millisecond) // simulates a handler for the new object
	if err := reader.Get(context.Background(), key, object); err != nil || object.GetLabels() != nil {
		return fmt.Errorf("the object is changed before it is handled: %v, %w", object.GetLabels(), err)
	}
	object.SetAnnotations(map[string]string{"handled": "yes"})
	if err := reader.Update(context.Background(), object); err != nil {
		return err
	}
	for object.GetLabels()["changed-by"] != "devcluster" {
		if err := reader.Get(context.Background(), key, object); err != nil {
			return err
		}
	}
	return nil
}

// transcript collects the output of a command.
type transcript struct {
	mu          sync.Mutex
	text        bytes.Buffer
	awaitedText string
	textFound   chan struct{}
}

// newTranscript returns a transcript that closes its channel when it contains the text.
func newTranscript(awaits string) *transcript {
	return &transcript{awaitedText: awaits, textFound: make(chan struct{})}
}

func (o *transcript) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Contains(o.text.String(), o.awaitedText)
	n, err := o.text.Write(data)
	if !before && strings.Contains(o.text.String(), o.awaitedText) {
		close(o.textFound)
	}
	return n, err
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// writeFile writes a file in a folder of the test.
func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

const loadedObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: team}\n"

// fakeKubectl sets PATH to a folder with only a fake kubectl, which records its calls in the returned file.
func fakeKubectl(t *testing.T) (calls string) {
	t.Helper()
	program := writeFile(t, "kubectl", "#!/bin/sh\necho \"$@\" >>'"+t.TempDir()+"/calls'\n"+
		"case \"$1\" in apply) echo configmap/a ;; esac\n", 0o755)
	t.Setenv("PATH", filepath.Dir(program))
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ">>'")
	calls, _, _ = strings.Cut(rest, "'")
	return calls
}

func TestDemonstration(t *testing.T) {
	cases := map[string]struct {
		reason, role   string
		consoleTimeout time.Duration
		hasConsole     bool
	}{
		"Operator": {"the console of an operator is printed", "idle", time.Hour, true},
		"Other":    {"a program without a console is started without one", "plain", 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fakeKubectl(t)
			t.Setenv(operatorRole, tc.role)
			input, stop, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out := newTranscript("Ctrl-C ends it")
			c := command{stdin: input, stdout: out, stderr: out, consoleTimeout: tc.consoleTimeout}
			go func() {
				<-out.textFound
				_ = stop.Close()
			}()
			code, err := c.runCommand([]string{
				"--demo", "--load", writeFile(t, "object.yaml", loadedObject, 0o600), "--", os.Args[0], "run",
			})
			if err != nil || code != 0 {
				t.Errorf("the demonstration must end without an error: code %d, %v", code, err)
			}
			for _, want := range []string{
				"kubectl get configmap/a -n team -o yaml ",
				"kubectl label --overwrite configmap/a -n team changed-by=me ",
				"kubectl delete configmap/a -n team ", "export KUBECONFIG=/",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output must contain %q:\n%s", want, out)
				}
			}
			if got := strings.Contains(out.String(), "/console "); got != tc.hasConsole {
				t.Errorf("%s: got the address of a console: %t\n%s", tc.reason, got, out)
			}
		})
	}
}

func TestDemonstrationWithoutKubectl(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(operatorRole, "labelled")
	out := newTranscript("")
	c := command{stdin: strings.NewReader(""), stdout: out, stderr: out, consoleTimeout: time.Hour}
	manifest := strings.Replace(loadedObject, ", namespace: team", "", 1)
	code, err := c.runCommand([]string{
		"--demo", "--load", writeFile(t, "object.yaml", manifest, 0o600), "--", os.Args[0], "run",
	})
	if err != nil || code != 0 {
		t.Errorf("the demonstration must end without an error: code %d, %v", code, err)
	}
	for _, want := range []string{"no kubectl in PATH", "changed-by=devcluster to configmap/a", "/console "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output must contain %q:\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "kubectl label") {
		t.Errorf("without kubectl, the output must not suggest its commands:\n%s", out)
	}
}

const userKubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"production",
"clusters":[{"name":"c","cluster":{"server":"https://production.example.org"}}],
"contexts":[{"name":"production","context":{"cluster":"c","user":""}}]}`

func TestCurrentContextAsks(t *testing.T) {
	const asked = "https://production.example.org"
	cases := map[string]struct {
		reason, kubeconfig, input string
		isTerminal                bool
		want                      error
		wantOutput                string
	}{
		"Pipe": {"an answer from a pipe does not count",
			userKubeconfig, "y\n", false, errDeclined, "no terminal to ask at"},
		"NoInput": {"a missing answer declines", userKubeconfig, "", true, errDeclined, asked},
		"Enter":   {"an empty answer declines", userKubeconfig, "\n", true, errDeclined, asked},
		"No":      {"the answer n declines", userKubeconfig, "n\n", true, errDeclined, asked},
		"Yes":     {"the answer y agrees", userKubeconfig, "y\n", true, nil, `"production"`},
		"NoContext": {"a kubeconfig without a current context is an error",
			`{"kind":"Config"}`, "y\n", true, errNoContext, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := fakeKubectl(t)
			t.Setenv(operatorRole, "plain")
			t.Setenv("KUBECONFIG", writeFile(t, "config", tc.kubeconfig, 0o600))
			object := writeFile(t, "object.yaml", loadedObject, 0o600)
			out := newTranscript("never")
			c := command{stdin: strings.NewReader(tc.input), isTerminal: tc.isTerminal, stdout: out, stderr: out}
			_, err := c.runCommand([]string{"--current-context", "--load", object, "--", os.Args[0], "run"})
			if !errors.Is(err, tc.want) || !strings.Contains(out.String(), tc.wantOutput) {
				t.Errorf("%s: got %v, want %v, and %q in\n%s", tc.reason, err, tc.want, tc.wantOutput, out)
			}
			made, err := os.ReadFile(calls)
			if tc.want != nil {
				if err == nil {
					t.Errorf("%s: kubectl must not be called: %s", tc.reason, made)
				}
				return
			}
			if want := "apply -o name -f " + object + "\n"; string(made) != want {
				t.Errorf("kubectl was called with %q (%v), want %q", made, err, want)
			}
		})
	}
}

// TestMistakes shows that mistakes are reported with a hint before anything runs.
func TestMistakes(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	foreign := writeFile(t, "config", userKubeconfig, 0o600)
	garbage := writeFile(t, "garbage.yaml", "\x00\x01{{{", 0o600)
	noObject := writeFile(t, "values.yaml", "replicas: 3\n", 0o600)
	missing := filepath.Join(t.TempDir(), "no", "such", "file")
	cases := map[string]struct {
		reason    string
		arguments []string
		want      string
	}{
		"PortTaken": {"a port in use is an error that suggests another one",
			[]string{"--address", taken.Addr().String()},
			"choose another address, or port 0 for a free one"},
		"ForeignKubeconfig": {"a kubeconfig of another cluster is not overwritten", []string{"--kubeconfig", foreign},
			"is of another cluster: choose a path that does not exist"},
		"UnwritableKubeconfig": {"a kubeconfig in a missing folder is an error", []string{"--kubeconfig", missing},
			"writing " + missing + ": no such file or directory"},
		"UnwritableSave": {"a dump in a missing folder is an error", []string{"--save", missing},
			"writing " + missing + ": no such file or directory"},
		"Garbage": {"a file that is not YAML is an error with its path", []string{"--load", garbage}, garbage},
		"NoObject": {"a file without objects is an error", []string{"--load", noObject},
			noObject + ": a document is not an object: it has no apiVersion or no kind"},
		"MissingLoad": {"a missing file is an error", []string{"--load", missing}, "no such file"},
		"NoProgram":   {"a demonstration without a program is an error", []string{"--demo"}, "need a program"},
		"NotFound":    {"a missing program is an error", []string{"--", missing}, "starting " + missing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := newTranscript("never")
			c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
			arguments := tc.arguments
			if !slices.Contains(arguments, "--") && name != "NoProgram" {
				arguments = append(arguments, "--", os.Args[0], "-test.run=^$")
			}
			code, err := c.runCommand(arguments)
			if err == nil || code == 0 || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %d, %v, want %q", tc.reason, code, err, tc.want)
			}
		})
	}
}

// TestTwoCommandsAtOnce shows that several clusters on one machine are independent, and that --load reads the objects
// of --save.
func TestTwoCommandsAtOnce(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	object := writeFile(t, "object.yaml", loadedObject, 0o600)
	t.Setenv(operatorRole, "plain")
	var wait sync.WaitGroup
	for _, arguments := range [][]string{{"--load", object, "--save", dump}, {"--load", object}} {
		wait.Go(func() {
			out := newTranscript("never")
			c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
			if code, err := c.runCommand(append(arguments, "--", os.Args[0], "run")); code != 0 || err != nil {
				t.Errorf("the command must end without an error: code %d, %v:\n%s", code, err, out)
			}
		})
	}
	wait.Wait()
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Load: []string{dump}})
	if err != nil {
		t.Fatal(err)
	}
	if loaded := cluster.Loaded(); !slices.ContainsFunc(loaded, func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == "team" && o.GetName() == "a"
	}) {
		t.Errorf("the dump must have the loaded object, got %v", loaded)
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// consoleTimeout limits the wait for the operator's console. A program with command line flags of its own may not
	// have a console.
	consoleTimeout = 15 * time.Second
	// changeTimeout limits the wait for the operator to handle the new object. changeDelay is the time after the
	// operator's last write until the object counts as handled.
	changeTimeout, changeDelay = 10 * time.Second, time.Second
)

// demonstration prints commands for trying out an operator that has just started, and the URL of its console. If
// kubectl is missing, it changes the object itself.
type demonstration struct {
	out        io.Writer
	kubeconfig string // empty for the kubeconfig of the user
	config     *rest.Config
	// object is the object to change. It is nil if no object was loaded, or on the user's own cluster.
	object *unstructured.Unstructured
	// kubectlArguments is the object in the form of kubectl arguments. It is empty without an object.
	kubectlArguments string
	console          string // the URL
	consoleTimeout   time.Duration
}

// argumentsFor returns the kubectl arguments that select an object.
func argumentsFor(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	// The group avoids ambiguity between kinds with the same name.
	if kind.Group != "" {
		name += "." + kind.Group
	}
	name += "/" + object.GetName()
	if namespace := object.GetNamespace(); namespace != "" && namespace != "default" {
		name += " -n " + namespace
	}
	return name
}

// readObject reads the stored state of a loaded object.
func readObject(
	ctx context.Context, config *rest.Config, loaded *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	reader, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	stored := loaded.DeepCopy()
	if namespaced, err := reader.IsObjectNamespaced(stored); err == nil && namespaced && stored.GetNamespace() == "" {
		stored.SetNamespace("default") // the default of kubectl for manifests
	}
	return stored, reader.Get(ctx, client.ObjectKeyFromObject(stored), stored)
}

// withConsole selects a free port for the console, and returns the operator's flags to serve it there. Another process
// may take the port before the operator does; the console is then missing.
func (d *demonstration) withConsole() ([]string, error) {
	// The kernel selects a free port. It is released before the operator listens on it.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("looking for a port for the console: %w", err)
	}
	address := listener.Addr().String()
	d.console = "http://" + address + "/console"
	return []string{"--console", "--debug-bind-address", address}, listener.Close()
}

// showCommands prints the commands when the operator is running, so that they appear below the operator's first log
// lines.
func (d *demonstration) showCommands(ctx context.Context) {
	hasConsole := waitFor(ctx, d.consoleTimeout, d.consoleAnswers)
	if ctx.Err() != nil {
		return // the program has ended already
	}
	_, err := exec.LookPath("kubectl")
	if d.kubectlArguments == "" || err != nil {
		d.printLine("The operator runs.")
	} else {
		d.printCommands()
	}
	if hasConsole {
		d.printLine("  %s   # the console: every object, and why each handler ran or did not run", d.console)
	}
	d.printLine("Ctrl-C ends it.")
	// Without kubectl, the user cannot try the commands, so the demonstration makes one change.
	if err != nil && d.object != nil {
		d.changeObject(ctx)
	}
}

// printCommands prints the kubectl commands to try.
func (d *demonstration) printCommands() {
	d.printLine("To try, in another terminal:")
	if d.kubeconfig != "" {
		d.printLine("  export KUBECONFIG=%s", d.kubeconfig)
	}
	d.printLine("  kubectl get %s -o yaml   # the object, with what the operator has written", d.kubectlArguments)
	d.printLine("  kubectl label --overwrite %s changed-by=me   # a change: the operator logs its update handlers",
		d.kubectlArguments)
	d.printLine("  kubectl delete %s   # the end of the object: the operator logs its delete handlers",
		d.kubectlArguments)
}

// printLine prints one line.
func (d *demonstration) printLine(format string, arguments ...any) {
	_, _ = fmt.Fprintf(d.out, "devcluster: "+format+"\n", arguments...)
}

// consoleAnswers reports whether the operator serves its console.
func (d *demonstration) consoleAnswers(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.console, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// changeObject changes a label of the object when the operator has handled its creation.
func (d *demonstration) changeObject(ctx context.Context) {
	d.printLine("There is no kubectl in PATH: devcluster has applied %s for you.", d.kubectlArguments)
	writer, err := client.New(d.config, client.Options{})
	if err != nil {
		d.printLine("It cannot be changed: %v", err)
		return
	}
	current := d.object.DeepCopy()
	last, since := d.object.GetResourceVersion(), time.Now()
	// The operator has handled the object when it has written to it, and then not written for some time.
	waitFor(ctx, changeTimeout, func(ctx context.Context) bool {
		if err := writer.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return false
		}
		// Each write of the operator restarts the delay.
		if version := current.GetResourceVersion(); version != last {
			last, since = version, time.Now()
		}
		return last != d.object.GetResourceVersion() && time.Since(since) > changeDelay
	})
	d.printLine(`Adding the label changed-by=devcluster to %s: if the operator has handlers for updates, `+
		`it logs them next.`, d.kubectlArguments)
	// Conflicts cannot occur: the patch does not contain a resource version.
	err = writer.Patch(ctx, current, client.RawPatch(
		types.MergePatchType, []byte(`{"metadata":{"labels":{"changed-by":"devcluster"}}}`),
	))
	// The error is not shown if the user has ended the program.
	if err != nil && ctx.Err() == nil {
		d.printLine("It cannot be changed: %v", err)
	}
}

// waitFor polls a condition, and reports whether it became true in time.
func waitFor(ctx context.Context, patience time.Duration, isMet func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for !isMet(ctx) {
		select {
		case <-ctx.Done():
			return false
		case <-ticks.C:
		}
	}
	return true
}

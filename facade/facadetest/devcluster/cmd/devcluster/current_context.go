package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

var (
	errDeclined  = errors.New("nothing was changed")
	errNoContext = errors.New("your kubeconfig has no current context with a cluster: " +
		"see kubectl config get-contexts, or set KUBECONFIG")
)

// currentCluster is the cluster of the user's kubeconfig, accessed with kubectl.
type currentCluster struct {
	command         *command
	kubeconfig      string // a copy that contains only the confirmed context
	lastAppliedName string // the name of the last applied object
}

// runCurrent runs the program on the cluster of the user's kubeconfig, after the user has confirmed that.
func (c *command) runCurrent(ctx context.Context) (code int, err error) {
	// Kubectl implements files, folders and kustomizations as users expect.
	if _, err := exec.LookPath("kubectl"); err != nil {
		return 1, fmt.Errorf("--current-context applies objects by kubectl: %w", err)
	}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return 1, fmt.Errorf("reading your kubeconfig: %w", err)
	}
	// Check the context before asking, because kubectl would fall back to localhost.
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return 1, errNoContext
	}
	// The user must see the server before agreeing: a context name can be misleading.
	c.printMessage("the current context of your kubeconfig is %q, its server %s", config.CurrentContext,
		config.Clusters[current.Cluster].Server)
	c.printMessage("this applies %s to it, and runs %s on it with the rights of this context",
		strings.Join(c.Load, ", "),
		c.program[0])
	if !c.isConfirmed() {
		return 1, errDeclined
	}
	// A temporary folder holds the copy of the kubeconfig, which contains credentials.
	folder, err := os.MkdirTemp("", "devcluster-")
	if err != nil {
		return 1, fmt.Errorf("writing the kubeconfig of the context: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	cluster := currentCluster{command: c, kubeconfig: filepath.Join(folder, "kubeconfig")}
	// The program uses a copy, so that the confirmed context stays in use even if the user's file changes.
	err = errors.Join(clientcmdapi.MinifyConfig(config), clientcmd.WriteToFile(*config, cluster.kubeconfig))
	if err != nil {
		return 1, fmt.Errorf("writing the kubeconfig of the context: %w", err)
	}
	for _, path := range c.Load {
		if err := cluster.applyPath(ctx, path); err != nil {
			return 1, fmt.Errorf("applying %s: %w", path, err)
		}
	}
	// Objects are not deleted at the end, because they may have existed before.
	if cluster.lastAppliedName != "" {
		defer c.printMessage("the applied objects remain; to remove the last one: kubectl delete %s",
			cluster.lastAppliedName)
	}
	return c.startProgram(ctx, demonstration{out: c.stderr, kubeconfig: cluster.kubeconfig,
		kubectlArguments: cluster.lastAppliedName})
}

// isConfirmed asks the user to continue. Without a terminal, the answer is no.
func (c *command) isConfirmed() bool {
	if !c.isTerminal {
		c.printMessage("there is no terminal to ask at, which counts as no")
		return false
	}
	_, _ = fmt.Fprint(c.stderr, "devcluster: continue? [y/N] ")
	line, _ := bufio.NewReader(c.stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// applyPath applies a file or a folder, and waits until kinds that it defines are served.
func (u *currentCluster) applyPath(ctx context.Context, path string) error {
	// A folder with a kustomization must be applied by -k.
	how := "-f"
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		how = "-k"
	}
	applied, err := u.runKubectl(ctx, "apply", "-o", "name", how, path)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(applied) {
		u.command.printMessage("applied %s", name)
		u.lastAppliedName = name
		if !strings.HasPrefix(name, "customresourcedefinition.") {
			continue
		}
		// Objects of a kind can only be applied when the kind is served.
		if _, err := u.runKubectl(ctx, "wait", name, "--for=condition=Established", "--timeout=1m"); err != nil {
			return err
		}
	}
	return nil
}

// runKubectl runs kubectl on the confirmed context, and returns its output.
func (u *currentCluster) runKubectl(ctx context.Context, arguments ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "kubectl", arguments...)
	// The variable is appended last, so it replaces the user's own.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig)
	cmd.Stderr = u.command.stderr
	data, err := cmd.Output()
	return string(data), err
}

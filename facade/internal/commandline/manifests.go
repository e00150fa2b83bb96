package commandline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// Manifests returns the manifests of an operator as files, and hints for the user. The function cluster connects to a
// cluster, if that is needed.
type Manifests func(
	ctx context.Context, given RunFlags, options manifests.Options, cluster func() (*rest.Config, error),
) (files []manifests.File, hints []string, err error)

// manifestPrinter is the command that prints manifests, with its flags.
type manifestPrinter struct {
	base    baseCommand
	options manifests.Options
	needs   needsFlags
	ca      string // --ca-file
	output  string // --output
}

// manifestsCommand returns the command that prints the manifests with which the operator runs in a cluster.
func manifestsCommand(p Program, program string) *cobra.Command {
	m := &manifestPrinter{base: newBase(p, "manifests")}
	cmd := &cobra.Command{
		Use: "manifests", Short: "Print the manifests of the operator, for kubectl apply", Args: rejectArguments,
		Long: "Print what the operator needs to run in a cluster: a namespace, a service account with the " +
			"permissions of its handlers and no others, a Deployment, and what belongs to its admission handlers " +
			"and its peering. Nothing is written to a cluster. A cluster is read only for kinds that neither " +
			"Kubernetes nor --crds has. Startup handlers are not called, so what they set is not known.\n\n" +
			environmentHelp,
		Example: manifestsExamples(program),
		RunE:    m.printManifests,
	}
	m.addFlags(cmd)
	return cmd
}

// addFlags adds the flags of the command.
func (m *manifestPrinter) addFlags(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &m.options
	m.base.addClusterFlags(flags)
	m.base.scope.addFlags(flags, "the operator serves this `namespace`", "the operator serves the whole cluster")
	m.needs.addFlags(cmd)
	flags.StringVar(&o.Image, "image", "", "the container `image` of the operator")
	flags.StringVar(
		&o.Namespace, "operator-namespace", "",
		"the `namespace` of the operator itself; default: that of its Service, or of its name",
	)
	flags.IntVar(&o.Replicas, "replicas", 1, "the `number` of pods; all serve admission, and one of them acts, "+
		"unless they share the objects; with sharding, the default is 3")
	flags.StringVar(&o.CRDs, "crds", "", "the `folder` or file with the CRDs of the operator, which are printed first")
	flags.StringVar(
		&o.Recording, "from-recording", "",
		"an audit log with a run of the operator: a `file` of devcluster --record, or of an API server; rules that "+
			"its requests need and that are not declared are printed as Go code",
	)
	flags.StringSliceVar(&o.With, "with", nil, "add these optional `parts`: monitoring, network-policy, "+
		"and, with sharding, autoscaling")
	flags.StringSliceVar(
		&o.Only, "only", nil,
		"print only these `parts`: crds, namespace, rbac, deployment, webhooks, peering, monitoring, network-policy, "+
			"autoscaling",
	)
	flags.BoolVar(&o.CertManager, "cert-manager", false, "let cert-manager provide the certificate of the webhooks")
	flags.StringVar(
		&o.Webhooks.Service, "service", "",
		"the `service` in front of the operator, as namespace/name or namespace/name:port",
	)
	flags.StringVar(&o.Webhooks.URL, "url", "", "the `URL` of the operator, if it is not in the cluster")
	flags.StringVar(
		&m.ca, "ca-file", "", "the `file` with the CA of the operator's certificate; default: others fill it in",
	)
	flags.StringVar(
		&o.Format, "format", manifests.Plain, "the `format`: plain for kubectl apply, kustomize or helm",
	)
	flags.StringVarP(&m.output, "output", "o", "", "write files to this `folder`; needed for kustomize and helm")
	m.base.finishFlags(cmd)
}

// printManifests prints or writes the manifests, and prints hints to the error output, so that the output can be piped
// to kubectl.
func (m *manifestPrinter) printManifests(cmd *cobra.Command, _ []string) error {
	if m.base.program.Err != nil {
		return m.base.program.Err
	}
	// This command has no flags of the log, so it does not use the common check.
	if err := m.base.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	if err := cmp.Or(m.base.scope.checkFlags(cmd), m.checkFlags(cmd)); err != nil {
		return m.base.environment.listVariables(err)
	}
	settings, err := m.base.program.Operator.Settings()
	if err != nil {
		return err
	}
	connect := func() (*rest.Config, error) { return m.base.logIn(settings) }
	// Nothing is printed before all objects are known: kubectl must not apply a part of them.
	files, hints, err := m.base.program.Manifests(cmd.Context(), m.needs.values(m.base.scope), m.options, connect)
	if err != nil {
		return err
	}
	// Hints are YAML comments, in case both outputs are redirected to one file.
	for _, hint := range hints {
		cmd.PrintErrln("#", hint)
	}
	if m.output != "" {
		return writeFiles(m.output, files, len(m.options.Only) > 0)
	}
	for i, file := range files {
		separator := ""
		if i > 0 {
			separator = "---\n"
		}
		if _, err := fmt.Fprint(cmd.OutOrStdout(), separator, file.Content); err != nil {
			return fmt.Errorf("printing manifests: %w", err)
		}
	}
	return nil
}

// generatedHeader is the first line of the files that the command writes.
const generatedHeader = "# Generated by the command manifests, which replaces or removes this file.\n"

// writeFiles writes the files to the folder, over those of a former run. With onlyParts, other files of former runs
// stay, as do files that the command has not written.
func writeFiles(folder string, files []manifests.File, onlyParts bool) error {
	written := map[string]bool{}
	for _, file := range files {
		path := filepath.Join(folder, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		content := file.Content
		if filepath.Ext(path) == ".yaml" {
			content = generatedHeader + content
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		written[path] = true
	}
	if onlyParts {
		return nil
	}
	for _, below := range []string{"", "crds", "templates"} {
		if err := removeFormer(filepath.Join(folder, below), written); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return nil
}

// removeFormer removes the files of a folder that a former run has written and this one has not.
func removeFormer(folder string, written map[string]bool) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		// The target of a link can be anywhere.
		if written[path] || !entry.Type().IsRegular() || filepath.Ext(path) != ".yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(content, []byte(generatedHeader)) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFlags validates the flags and reads the CA.
func (m *manifestPrinter) checkFlags(cmd *cobra.Command) (err error) {
	way := &m.options.Webhooks
	switch {
	// A webhook configuration has either a service or a URL.
	case way.Service != "" && way.URL != "":
		return asUsageError(cmd, errors.New("--service and --url exclude each other"))
	case m.options.Format != manifests.Plain && m.output == "":
		return asUsageError(cmd, errors.New("--format: this format has several files: name a folder by --output"))
	}
	m.options.DefaultReplicas = !cmd.Flags().Changed("replicas")
	if err := m.options.Check(); err != nil {
		return asUsageError(cmd, err)
	}
	if err := m.needs.checkFlags(cmd); err != nil {
		return err
	}
	if m.ca == "" {
		return nil
	}
	// The bundle is validated here, so that a bad file is a usage error.
	data, err := os.ReadFile(m.ca)
	if err == nil {
		way.Bundle, err = certificates.ParseBundle(data)
	}
	if err != nil {
		return asUsageError(cmd, fmt.Errorf("--ca-file: %w", err))
	}
	return nil
}

package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// WebhookAddress is the address at which the API server reaches the operator. It replaces that of the settings.
type WebhookAddress struct {
	// Service has the form "namespace/name", and URL the form "https://host:9443". If both are empty, the settings are
	// used.
	Service, URL string
	// Bundle is the CA in PEM. If it is nil, other components set it, such as cert-manager.
	Bundle []byte
}

// Webhooks returns the webhook configurations of an operator as it would manage them in a cluster, and hints for the
// user.
type Webhooks func(
	ctx context.Context, cluster *rest.Config, way WebhookAddress,
) (objects []client.Object, hints []string, err error)

// printer is the command that prints webhook configurations.
type printer struct {
	base    baseCommand
	address WebhookAddress // --service and --url
	caFile  string         // --ca-file
}

// webhooksCommand returns the command that prints the webhook configurations for an operator that does not manage them
// itself.
func webhooksCommand(p Program, program string) *cobra.Command {
	w := &printer{base: newBase(p, "webhooks")}
	cmd := &cobra.Command{
		Use: "webhooks", Short: "Print the webhook configurations, for kubectl apply", Args: rejectArguments,
		Long: "Print the webhook configurations that the API server needs for the handlers of admission, for those " +
			"who do not have the operator manage them. The cluster is asked which resources there are, and nothing " +
			"is written; startup handlers are not called, so what they set is not known.\n\n" + environmentHelp,
		Example: webhooksExamples(program),
		RunE:    w.printConfigurations,
	}
	flags := cmd.Flags()
	w.base.addClusterFlags(flags)
	flags.StringVar(
		&w.address.Service, "service", "",
		"the `service` before the operator, as namespace/name or namespace/name:port",
	)
	flags.StringVar(&w.address.URL, "url", "", "the `URL` of the operator, if it is not in the cluster")
	flags.StringVar(
		&w.caFile, "ca-file", "", "the `file` with the CA of the operator's certificate; default: others fill it in",
	)
	w.base.finishFlags(cmd)
	return cmd
}

// printConfigurations prints YAML to the output, and hints to the error output, so that the output can be piped to
// kubectl.
func (w *printer) printConfigurations(cmd *cobra.Command, _ []string) error {
	if w.base.program.Err != nil {
		return w.base.program.Err
	}
	// This command has no flags of scope or log, so it does not use the common check.
	if err := w.base.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	if err := w.checkFlags(cmd); err != nil {
		return w.base.environment.listVariables(err)
	}
	settings, err := w.base.program.Operator.Settings()
	if err != nil {
		return err
	}
	// The cluster is needed to resolve the resources of the handlers.
	config, err := w.base.logIn(settings)
	if err != nil {
		return err
	}
	// Nothing is printed before all objects are known: kubectl must not apply a part of them.
	objects, hints, err := w.base.program.Webhooks(cmd.Context(), config, w.address)
	if err != nil {
		return err
	}
	// Hints are YAML comments, in case both outputs are redirected to one file.
	for _, hint := range hints {
		cmd.PrintErrln("#", hint)
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", text)
		}
		if err != nil {
			return fmt.Errorf("printing webhook configurations: %w", err)
		}
	}
	return nil
}

// checkFlags validates the flags and reads the CA.
func (w *printer) checkFlags(cmd *cobra.Command) (err error) {
	// A webhook configuration has either a service or a URL.
	if w.address.Service != "" && w.address.URL != "" {
		return asUsageError(cmd, errors.New("--service and --url exclude each other"))
	}
	if w.caFile == "" {
		return nil
	}
	// The bundle is validated here, so that a bad file is a usage error.
	data, err := os.ReadFile(w.caFile)
	if err == nil {
		w.address.Bundle, err = certificates.ParseBundle(data)
	}
	if err != nil {
		return asUsageError(cmd, fmt.Errorf("--ca-file: %w", err))
	}
	return nil
}

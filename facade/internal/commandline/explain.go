package commandline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

const (
	// explainTimeout limits the request. It is generous, because the operator answers from memory.
	explainTimeout = 30 * time.Second
	// maxExplainedBytes limits the size of an answer in bytes.
	maxExplainedBytes = 16 << 20
)

// explainer is the command that requests the explanation of one object from a running operator.
type explainer struct {
	base    baseCommand
	object  namedObject
	address string // --address
}

// explainCommand returns the command that shows why handlers were or were not called.
func explainCommand(p Program) *cobra.Command {
	e := &explainer{base: newBase(p, "explain")}
	cmd := &cobra.Command{
		Use: "explain KIND [NAMESPACE/]NAME", Short: "Explain why handlers were called for an object, or not",
		Long: "Show the history of one object and why each handler ran or did not run: its events, changes, " +
			"attempts, outcomes and retries. The running operator answers from its memory, which begins with its " +
			"start and is limited. It listens on its own machine only, unless its flag --debug-bind-address has " +
			"another address.",
		Example: explainExamples, Args: checkObjectArguments, RunE: e.runExplain,
	}
	// This command does not connect to the cluster, so it has only its own flags.
	cmd.Flags().StringVar(
		&e.address, "address", inspection.DefaultAddress, "where the operator answers, as host:port",
	)
	e.object.addFlags(cmd.Flags())
	e.base.addOutput(cmd, "the `format` of the answer: text or json")
	e.base.finishFlags(cmd)
	return cmd
}

// runExplain sends the request and prints the answer.
func (e *explainer) runExplain(cmd *cobra.Command, args []string) error {
	// A wrong value is reported even if no operator is running.
	if err := e.base.readFlags(cmd, e.object.readName(args)); err != nil {
		return err
	}
	about := url.Values{"kind": {e.object.kind}, "namespace": {e.object.namespace}, "name": {e.object.name}}
	answer, err := e.requestExplanation(cmd, about)
	if err != nil {
		return err
	}
	return e.printAnswer(cmd.OutOrStdout(), answer)
}

// requestExplanation returns the operator's answer as JSON. Errors of the connection name the address, because it is
// the most likely reason.
func (e *explainer) requestExplanation(cmd *cobra.Command, about url.Values) ([]byte, error) {
	at := url.URL{Scheme: "http", Host: e.address, Path: inspection.ExplainPath, RawQuery: about.Encode()}
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, asUsageError(cmd, fmt.Errorf("--address: %w", err))
	}
	// The operator is on the same machine, so proxies of the environment must not be used.
	client := &http.Client{Transport: &http.Transport{}, Timeout: explainTimeout}
	response, err := client.Do(request)
	if err != nil {
		// Unwrap removes the URL from client errors, because a long URL would hide the reason.
		return nil, fmt.Errorf("no operator answers at %s: is it running, and here? In a cluster, ask by "+
			"'kubectl exec'; for another address, see --address: %w", e.address, errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	// Another server at this address could send an endless answer.
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxExplainedBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", e.address, err)
	}
	if response.StatusCode == http.StatusOK {
		return answer, nil
	}
	// An operator answers errors in JSON. It includes its name, unless it rejects the host name of the request.
	var problem inspection.Problem
	// Everything else comes from another kind of server at the address.
	if json.Unmarshal(answer, &problem) != nil || problem.Error == "" {
		return nil, fmt.Errorf("the server at %s is not an operator that serves explanations: it responds with %s; "+
			"see --address", e.address, response.Status)
	}
	// Several operators can run on one machine, and the answer of the wrong one would be misleading.
	if problem.Operator != "" && problem.Operator != e.base.program.Name {
		return nil, e.otherOperatorError(problem.Operator)
	}
	return nil, errors.New(problem.Error)
}

// otherOperatorError returns the error for an answer that comes from another operator.
func (e *explainer) otherOperatorError(name string) error {
	return fmt.Errorf("the server at %s is operator %q, not %q: see --address, and --debug-bind-address of run",
		e.address, name, e.base.program.Name)
}

// printAnswer checks that the answer comes from this operator, and prints it. JSON is printed unchanged, because it may
// contain fields of a newer version.
func (e *explainer) printAnswer(to io.Writer, answer []byte) error {
	// The operator always answers in JSON. The text is made here, so that both outputs use the same request.
	var found journal.Explanation
	if err := json.Unmarshal(answer, &found); err != nil {
		return fmt.Errorf("the server at %s is not an operator that serves explanations: %w; see --address",
			e.address, err)
	}
	if found.Operator != e.base.program.Name {
		return e.otherOperatorError(found.Operator)
	}
	if e.base.output == "json" {
		_, err := to.Write(answer)
		return err
	}
	return found.WriteText(to)
}

package commandline

import "strings"

// runExamples are those of the command that runs the operator.
func runExamples(command string) string {
	return strings.ReplaceAll(`  # The whole cluster that kubectl is set to:
  % -A

  # Two namespaces, with more to read:
  % -n team-a -n team-b --verbose

  # Another cluster, with logs for machines:
  % -A --kubeconfig ./cluster.yaml --log-format json

  # While you try a change, the operator that runs in the cluster pauses:
  % -A --context staging --dev`, "%", command)
}

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

// freezeExamples are those of the command that has operators pause.
func freezeExamples(program string) string {
	return strings.ReplaceAll(`  # All operators of the cluster that share the peering "default" pause for ten minutes:
  % freeze -A -P default -t 10m

  # Those of one namespace, with a priority of at most 500, and a word for the log:
  % freeze -n team-a -P default -t 600 -p 500 -m "moving the database"`, "%", program)
}

// resumeExamples are those of the command that has them go on.
func resumeExamples(program string) string {
	return strings.ReplaceAll(`  # They go on:
  % resume -A -P default

  # Also those that somebody else has told to pause:
  % resume -A -P default --id somebody@their.machine`, "%", program)
}

// webhooksExamples are those of the command that prints webhook configurations.
func webhooksExamples(program string) string {
	return strings.ReplaceAll(`  # For an operator behind a Service, whose CA cert-manager fills in:
  % webhooks --service databases-system/webhook | kubectl apply -f -

  # For one on this machine, with the CA that it has dumped:
  % webhooks --url https://192.168.1.5:9443 --ca-file /tmp/ca.crt > webhooks.yaml`, "%", program)
}

// explainExamples are those of the command that asks why handlers were called or not.
func explainExamples(program string) string {
	return strings.ReplaceAll(`  # Of an operator on this machine:
  % explain widget default/my-widget

  # Of one in the cluster:
  kubectl exec deploy/my-operator -- % explain widget default/my-widget

  # For programs:
  % explain widgets.example.org my-widget -n default --output json`, "%", program)
}

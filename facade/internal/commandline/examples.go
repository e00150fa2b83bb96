package commandline

// runExamples are the examples of the command that runs the operator. The placeholder % becomes the
// program.
const runExamples = `  # The whole cluster that kubectl is set to:
  % -A

  # Two namespaces, with more to read:
  % -n team-a -n team-b --verbose

  # Another cluster, with logs for machines:
  % -A --kubeconfig ./cluster.yaml --log-format json

  # While you try a change, the operator that runs in the cluster pauses:
  % -A --context staging --dev`

// freezeExamples are the examples of the command that pauses operators.
const freezeExamples = `  # All operators of the cluster that share the peering "default" pause for ten minutes:
  % freeze -A -P default -t 10m

  # Those of one namespace, with a priority of at most 500, and a word for the log:
  % freeze -n team-a -P default -t 600 -p 500 -m "moving the database"`

// resumeExamples are the examples of the command that resumes operators.
const resumeExamples = `  # They go on:
  % resume -A -P default

  # Also operators that another user has paused:
  % resume -A -P default --id somebody@their.machine`

// manifestsExamples are the examples of the command that prints manifests.
const manifestsExamples = `  # To the cluster that kubectl is set to:
  % manifests --crds config/crd --image registry.example.org/my-operator:v1 | kubectl apply -f -

  # Two replicas for two namespaces, with alerts and a dashboard, as a folder for kustomize:
  % manifests --crds config/crd -n team-a -n team-b --replicas 2 --with monitoring --format kustomize -o deploy

  # A chart for Helm:
  % manifests --crds config/crd --image registry.example.org/my-operator:v1 --format helm -o chart

  # The rules that a run on the development cluster needed, and that are not declared:
  devcluster --record requests.jsonl -- % run --all-namespaces
  % manifests --all-namespaces --from-recording requests.jsonl > operator.yaml

  # Only the webhook configurations, of an operator behind a Service, whose CA cert-manager fills in:
  % manifests --only webhooks --service databases-system/webhook --cert-manager

  # Those of an operator on this machine, with the CA that it has dumped:
  % manifests --only webhooks --url https://192.168.1.5:9443 --ca-file /tmp/ca.crt`

// preflightExamples are the examples of the command that checks a cluster.
const preflightExamples = `  # With the service account of the operator, before it is deployed:
  % preflight -A --as system:serviceaccount:my-system:my-operator

  # With the permissions of a running pod:
  kubectl exec deploy/my-operator -- % preflight -A

  # The problems, for programs:
  % preflight -A -o json | jq '.findings[] | select(.status == "failed")'`

// planExamples are the examples of the command that predicts what the operator would do.
const planExamples = `  # Before a new version is rolled out:
  % plan -A

  # Its own Go tests or a pipeline read the whole report:
  % plan -A --output json

  # Without a cluster:
  kubectl get widgets,crds -A -o yaml > dump.yaml
  % plan --load dump.yaml

  # What remains to be done when it replaces a Python operator:
  % plan -A --from-kopf`

// explainExamples are the examples of the command that explains why handlers were or were not called.
const explainExamples = `  # Of an operator on this machine:
  % explain widget default/my-widget

  # Of one in the cluster:
  kubectl exec deploy/my-operator -- % explain widget default/my-widget

  # For programs:
  % explain widgets.example.org my-widget -n default --output json`

// drainExamples are the examples of the command that removes everything of the operator.
const drainExamples = `  # What would be removed:
  % drain -A --check

  # Remove it, when the operator is stopped:
  kubectl scale deployment my-operator --replicas 0
  % drain -A

  # Without peering and Lease, and with objects whose deletion waits for the operator:
  % drain -A --yes --deletions skip`

// retryExamples are the examples of the command that runs handlers again.
const retryExamples = `  # The handlers that have failed:
  % retry-object widget default/my-widget

  # All of them, and the command ends when they have finished:
  % retry-object widget default/my-widget --all --wait --timeout 10m`

// pauseExamples are the examples of the command that pauses an object.
const pauseExamples = `  # While you repair something by hand:
  % pause-object widget default/my-widget

  # The object must not be deleted either:
  % pause-object widgets.example.org my-widget -n default --deletion`

// resumeObjectExamples are the examples of the command that ends the pause of an object.
const resumeObjectExamples = `  # The operator handles it again:
  % resume-object widget default/my-widget`

// topExamples are the examples of the command that shows which replica has which ranges.
const topExamples = `  # Of an operator that serves the whole cluster:
  % top -A

  # By the operator's own permissions:
  kubectl exec deploy/my-operator -- % top

  # Whether all ranges have an owner:
  % top -o json | jq -e 'all(.groups[]; .unowned == [])'`

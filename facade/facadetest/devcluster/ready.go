package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// readyDelay is the time until an object becomes ready. Clients can observe both states.
const readyDelay = 500 * time.Millisecond

// readyStatusWriters maps the kinds that become ready to the functions that write their statuses.
var readyStatusWriters = map[string]func(object map[string]any){
	"Deployment": deploymentReady, "StatefulSet": statefulSetReady, "DaemonSet": daemonSetReady,
	"ReplicaSet": replicaSetReady, "Job": jobReady, "Pod": podIsReady, "PersistentVolumeClaim": claimReady,
}

// pretendReady writes the statuses that controllers and kubelets would write, until ctx ends.
func (c *Cluster) pretendReady(ctx context.Context) {
	// Each kind has a watch of its own.
	for _, r := range memapi.BuiltIn() {
		if write := readyStatusWriters[r.Kind]; write != nil {
			go func() {
				// A watch can end, for instance when it is too slow; then it starts again with all objects.
				for ctx.Err() == nil {
					if err := c.followReady(ctx, r, write); err != nil && ctx.Err() == nil {
						c.options.Log.Error(err, "Failed to report objects as ready", "resource", r.Plural)
						return
					}
				}
			}()
		}
	}
}

// followReady watches a resource and makes its objects ready, until the watch ends.
func (c *Cluster) followReady(ctx context.Context, r memapi.Resource, write func(map[string]any)) error {
	root := "/api/" + r.Version
	if r.Group != "" {
		root = "/apis/" + r.Group + "/" + r.Version
	}
	// The watch starts with all existing objects, so loaded ones become ready as well.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://memory"+root+"/"+r.Plural+"?watch=true",
		nil)
	if err != nil {
		return err
	}
	response, err := c.memory.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watching %s: %s", r.Plural, response.Status)
	}
	for events := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		if err := events.Decode(&event); err != nil {
			return nil // the watch has ended
		}
		if event.Type != "ADDED" && event.Type != "MODIFIED" {
			continue
		}
		of := event.Object.Metadata
		// The object is read again after the delay, because it may have changed or disappeared.
		time.AfterFunc(readyDelay, func() {
			c.memory.Edit(r, of.Namespace, of.Name, func(object map[string]any) {
				if at(object, "metadata", "deletionTimestamp") == "" {
					write(object)
				}
			})
			// The real controller creates the ReplicaSet before the status changes; here, clients only see both after
			// the delay.
			if r.Kind != deployments.Kind {
				return
			}
			if err := c.pretendReplicaSets(of.Namespace, of.Name); err != nil {
				c.options.Log.Error(err, "Failed to pretend the ReplicaSets of a Deployment", "namespace", of.Namespace,
					"name", of.Name)
			}
		})
	}
}

// setStatus sets fields of the status, and the observed generation.
func setStatus(object map[string]any, fields map[string]any) {
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object["status"] = status
	}
	for name, value := range fields {
		status[name] = value
	}
	// Clients compare the observed generation with the generation, to see whether a status is current.
	if generation, ok, _ := unstructured.NestedInt64(object, "metadata", "generation"); ok {
		status["observedGeneration"] = generation
	}
}

// setConditions adds conditions with the status True. It keeps those that are true already, with their times.
func setConditions(object map[string]any, reasons map[string]string, kinds ...string) {
	now := time.Now().UTC().Format(time.RFC3339)
	var kept []any
	// Conditions without a reason in the map are kept, and so are those that are true.
	for _, one := range items(object, "status", "conditions") {
		if _, replaced := reasons[fmt.Sprint(one["type"])]; !replaced || one["status"] == "True" {
			kept = append(kept, one)
		}
	}
	for _, kind := range kinds {
		if conditionIs(object, kind) {
			continue
		}
		kept = append(kept, map[string]any{
			"type": kind, "status": "True", "reason": reasons[kind], "lastTransitionTime": now,
		})
	}
	setStatus(object, map[string]any{"conditions": kept})
}

// specReplicas returns the number of replicas in the spec. The default is 1, as in the real server.
func specReplicas(object map[string]any) int64 {
	replicas, found, _ := unstructured.NestedInt64(object, "spec", "replicas")
	if !found {
		return 1
	}
	return replicas
}

func deploymentReady(o map[string]any) {
	n := specReplicas(o)
	setStatus(o, map[string]any{"replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n})
	setConditions(o, map[string]string{
		"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable",
	}, "Available", "Progressing")
	for _, one := range items(o, "status", "conditions") {
		// Deployments have both times in their conditions.
		if one["lastUpdateTime"] == nil {
			one["lastUpdateTime"] = one["lastTransitionTime"]
		}
	}
}

// replicaSetReady also makes the ReplicaSets of a Deployment ready, as they are separate objects.
func replicaSetReady(o map[string]any) {
	n := specReplicas(o)
	setStatus(o, map[string]any{"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n})
}

func statefulSetReady(o map[string]any) {
	// The revision changes with the generation, so that clients detect a rollout.
	n, revision := specReplicas(o), fmt.Sprintf("%s-%v", at(o, "metadata", "name"), at(o, "metadata", "generation"))
	setStatus(o, map[string]any{
		"replicas": n, "readyReplicas": n, "currentReplicas": n, "updatedReplicas": n, "availableReplicas": n,
		"currentRevision": revision, "updateRevision": revision,
	})
}

// daemonSetReady pretends that the cluster has one node.
func daemonSetReady(o map[string]any) {
	one := int64(1)
	setStatus(o, map[string]any{
		"desiredNumberScheduled": one, "currentNumberScheduled": one, "numberReady": one, "numberAvailable": one,
		"updatedNumberScheduled": one, "numberMisscheduled": int64(0),
	})
}

// jobReady completes a Job at once. A suspended Job remains suspended.
func jobReady(o map[string]any) {
	if suspended, _, _ := unstructured.NestedBool(o, "spec", "suspend"); suspended || conditionIs(o, "Complete") {
		return
	}
	// The Job starts and completes at the same moment.
	now := time.Now().UTC().Format(time.RFC3339)
	setStatus(o, map[string]any{
		"startTime": now, "completionTime": now, "succeeded": max(1, integer(o, "spec", "completions")),
		"ready": int64(0),
	})
	setConditions(o, map[string]string{
		"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached",
	}, "SuccessCriteriaMet", "Complete")
	unstructured.RemoveNestedField(o, "status", "observedGeneration") // Jobs do not have this field
}

// podIsReady starts all containers of a Pod. It does not change a Pod that is running or has ended.
func podIsReady(o map[string]any) {
	phase := at(o, "status", "phase")
	if phase == "Running" || phase == "Succeeded" || phase == "Failed" {
		return
	}
	now := time.Now().UTC().Format(time.RFC3339)
	var statuses []any
	for _, container := range items(o, "spec", "containers") {
		statuses = append(statuses, map[string]any{
			"name": container["name"], "image": container["image"], "imageID": "", "ready": true, "started": true,
			"restartCount": int64(0), "state": map[string]any{"running": map[string]any{"startedAt": now}},
		})
	}
	setStatus(o, map[string]any{
		"phase": "Running", "startTime": now, "containerStatuses": statuses, "podIP": "10.0.0.1", "hostIP": "127.0.0.1",
	})
	setConditions(o, nil, "PodScheduled", "Initialized", "ContainersReady", "Ready")
}

// claimReady binds a claim with the requested capacity. The volume does not exist.
func claimReady(o map[string]any) {
	if at(o, "status", "phase") == "Bound" {
		return
	}
	requests, _, _ := unstructured.NestedMap(o, "spec", "resources", "requests")
	modes, _, _ := unstructured.NestedSlice(o, "spec", "accessModes")
	// The name of the volume has the form that dynamic provisioners use.
	if at(o, "spec", "volumeName") == "" {
		_ = unstructured.SetNestedField(o, "pvc-"+at(o, "metadata", "uid"), "spec", "volumeName")
	}
	setStatus(o, map[string]any{"phase": "Bound", "capacity": requests, "accessModes": modes})
}

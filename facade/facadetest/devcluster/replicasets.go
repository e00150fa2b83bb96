package devcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// hashLabel is the label with the hash of a pod template, on a ReplicaSet and its pods.
const hashLabel = "pod-template-hash"

var (
	deployments = memapi.Resource{
		Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true,
		StatusSubresource: true,
	}
	replicaSets = memapi.Resource{
		Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true,
		StatusSubresource: true,
	}
)

// pretendReplicaSets creates the ReplicaSet for the template of a Deployment, and scales the ReplicaSets of former
// templates to zero. Helm inspects the ReplicaSet to determine whether the Deployment is ready.
func (c *Cluster) pretendReplicaSets(namespace, name string) error {
	deployment := c.memory.Object(deployments, namespace, name)
	if deployment == nil || at(deployment, "metadata", "deletionTimestamp") != "" {
		return nil
	}
	// The template determines the ReplicaSet: an unchanged template keeps it.
	pods, _, _ := unstructured.NestedFieldCopy(deployment, "spec", "template")
	template, err := json.Marshal(pods)
	if err != nil {
		return err
	}
	// The real controller uses another hash; clients only require that it differs between templates.
	sum := sha256.Sum256(template)
	hash := hex.EncodeToString(sum[:5])
	current, exists := name+"-"+hash, false
	for _, one := range c.memory.ObjectsOf(replicaSets) {
		// ReplicaSets of other owners are not changed.
		owners := items(one, "metadata", "ownerReferences")
		if len(owners) != 1 || owners[0]["uid"] != at(deployment, "metadata", "uid") {
			continue
		}
		replicas := int64(0)
		if at(one, "metadata", "name") == current {
			replicas, exists = specReplicas(deployment), true
		}
		c.memory.Edit(replicaSets, namespace, at(one, "metadata", "name"), func(set map[string]any) {
			_ = unstructured.SetNestedField(set, replicas, "spec", "replicas") // fails for a spec that is not a mapping
		})
	}
	if exists {
		return nil
	}
	// The first ReplicaSet, or one for a changed template.
	set, err := replicaSetOf(deployment, current, hash)
	if err != nil {
		return fmt.Errorf("making the ReplicaSet of the Deployment %s/%s: %w", namespace, name, err)
	}
	return c.createObject("/apis/apps/v1/namespaces/"+namespace+"/replicasets", set)
}

// replicaSetOf returns a ReplicaSet for the current template of a Deployment.
func replicaSetOf(deployment map[string]any, name, hash string) (map[string]any, error) {
	spec, _, err := unstructured.NestedMap(deployment, "spec") // a copy
	if err != nil {
		return nil, err
	}
	set := map[string]any{
		"apiVersion": "apps/v1", "kind": replicaSets.Kind,
		"metadata": map[string]any{
			"name": name,
			// The owner reference makes garbage collection delete the ReplicaSet with its Deployment.
			"ownerReferences": []any{map[string]any{
				"apiVersion": "apps/v1", "kind": deployments.Kind, "name": at(deployment, "metadata", "name"),
				"uid": at(deployment, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"replicas": specReplicas(deployment), "selector": spec["selector"], "template": spec["template"],
		},
	}
	labels, _, err := unstructured.NestedStringMap(spec, "template", "metadata", "labels")
	if err != nil {
		return nil, err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	// The label separates the pods of different templates.
	labels[hashLabel] = hash
	for _, path := range [][]string{
		{"metadata", "labels"}, {"spec", "template", "metadata", "labels"},
	} {
		if err := unstructured.SetNestedStringMap(set, labels, path...); err != nil {
			return nil, err
		}
	}
	return set, unstructured.SetNestedField(set, hash, "spec", "selector", "matchLabels", hashLabel)
}

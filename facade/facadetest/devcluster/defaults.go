package devcluster

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// The resources of webhook configurations.
var (
	mutatingWebhooks = plainResource("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
		"mutatingwebhookconfigurations", false)
	validatingWebhooks = plainResource("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
		"validatingwebhookconfigurations", false)
)

// moreResources are served in addition to those of memapi, because clients expect them. Only webhook configurations
// have an effect.
var moreResources = []memapi.Resource{
	plainResource("", "v1", "PodTemplate", "podtemplates", true), plainResource("", "v1", "ReplicationController",
		"replicationcontrollers", true, "rc"),
	plainResource("apps", "v1", "ControllerRevision", "controllerrevisions", true),
	mutatingWebhooks, validatingWebhooks,
	plainResource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", false),
	plainResource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false),
	plainResource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, "pc"),
	createOnlyResource("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
	createOnlyResource("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
	createOnlyResource("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false),
	createOnlyResource("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true),
	createOnlyResource("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false),
	createOnlyResource("authentication.k8s.io", "TokenReview", "tokenreviews", false),
}

// plainResource returns a built-in resource without a status and without generations.
func plainResource(group, version, kind, plural string, namespaced bool, short ...string) memapi.Resource {
	return memapi.Resource{
		Group: group, Version: version, Kind: kind, Plural: plural, Namespaced: namespaced, ShortNames: short,
		Plain: true,
	}
}

// createOnlyResource returns a resource whose objects are answers and are never stored, such as access reviews.
func createOnlyResource(group, kind, plural string, namespaced bool) memapi.Resource {
	return memapi.Resource{
		Group: group, Version: "v1", Kind: kind, Plural: plural, Namespaced: namespaced, Plain: true,
		Verbs: []string{"create"},
	}
}

// defaultValue is a default value of the real server.
type defaultValue struct {
	path  []string
	value any
}

// defaults holds the defaults that clients depend on, by group and kind. For example, kubectl dereferences these fields
// without a check.
var defaults = map[string][]defaultValue{
	"apps/Deployment": {
		{[]string{"spec", "replicas"}, int64(1)}, {[]string{"spec", "strategy", "type"}, "RollingUpdate"},
		{[]string{"spec", "strategy", "rollingUpdate", "maxUnavailable"}, "25%"},
		{[]string{"spec", "strategy", "rollingUpdate", "maxSurge"}, "25%"},
		{[]string{"spec", "revisionHistoryLimit"}, int64(10)},
	},
	"apps/ReplicaSet": {{[]string{"spec", "replicas"}, int64(1)}},
	"apps/StatefulSet": {
		{[]string{"spec", "replicas"}, int64(1)}, {[]string{"spec", "podManagementPolicy"}, "OrderedReady"},
		{[]string{"spec", "updateStrategy", "type"}, "RollingUpdate"},
		{[]string{"spec", "revisionHistoryLimit"}, int64(10)},
	},
	"apps/DaemonSet": {{[]string{"spec", "updateStrategy", "type"}, "RollingUpdate"}},
	"batch/Job": {
		{[]string{"spec", "completions"}, int64(1)}, {[]string{"spec", "parallelism"}, int64(1)},
		{[]string{"spec", "backoffLimit"}, int64(6)}, {[]string{"spec", "suspend"}, false},
		{[]string{"spec", "completionMode"}, "NonIndexed"},
	},
	"batch/CronJob": {
		{[]string{"spec", "suspend"}, false}, {[]string{"spec", "concurrencyPolicy"}, "Allow"},
		{[]string{"spec", "successfulJobsHistoryLimit"}, int64(3)},
		{[]string{"spec", "failedJobsHistoryLimit"}, int64(1)},
	},
	"/Service":               {{[]string{"spec", "type"}, "ClusterIP"}, {[]string{"spec", "sessionAffinity"}, "None"}},
	"/PersistentVolumeClaim": {{[]string{"spec", "volumeMode"}, "Filesystem"}},
	"/Pod": {{[]string{"spec", "restartPolicy"}, "Always"}, {[]string{"spec", "dnsPolicy"},
		"ClusterFirst"}},
	"/Secret": {{[]string{"type"}, "Opaque"}},
	"networking.k8s.io/NetworkPolicy": {
		{[]string{"spec", "policyTypes"}, []any{"Ingress"}},
	},
	"storage.k8s.io/StorageClass": {
		{[]string{"reclaimPolicy"}, "Delete"}, {[]string{"volumeBindingMode"}, "Immediate"},
	},
}

// applyDefaults sets missing fields to their defaults. It runs before every write as the mutation of memapi.Admission.
func applyDefaults(of memapi.Resource, object map[string]any) {
	if of.Kind == "Secret" && of.Group == "" {
		mergeStringData(object)
	}
	for _, one := range defaults[of.Group+"/"+of.Kind] {
		if _, found, err := unstructured.NestedFieldNoCopy(object, one.path...); found || err != nil {
			continue
		}
		// Fields below an optional structure are only set if the client has sent the structure.
		if len(one.path) > 1 && object[one.path[0]] == nil || len(one.path) > 3 && !isRollingUpdate(object) {
			continue
		}
		_ = unstructured.SetNestedField(object, one.value, one.path...) // an object where this fails is invalid
	}
	// A Service gets its address last, because it depends on the defaulted type.
	if of.Kind == "Service" && of.Group == "" {
		giveAddress(object)
	}
}

// giveAddress sets the cluster IP of a Service, because some clients wait for it. The address is derived from the name,
// so that a replaced Service keeps its address. It does not route anywhere.
func giveAddress(service map[string]any) {
	spec, ok := service["spec"].(map[string]any)
	// A Service of type ExternalName does not have an address, and one without a spec is invalid.
	if !ok || at(spec, "clusterIP") != "" || spec["type"] == "ExternalName" {
		return
	}
	sum := sha256.Sum256([]byte(at(service, "metadata", "namespace") + "/" + at(service, "metadata", "name")))
	// 10.0.0.0/16 has enough addresses for the Services of a test, and collisions do not matter without routing.
	address := fmt.Sprintf("10.0.%d.%d", sum[0], sum[1])
	spec["clusterIP"], spec["clusterIPs"] = address, []any{address}
}

// isRollingUpdate reports whether a Deployment uses rolling updates. With another strategy, it must not have parameters
// of a rolling update.
func isRollingUpdate(object map[string]any) bool {
	strategy, _, _ := unstructured.NestedString(object, "spec", "strategy", "type")
	return strategy == "RollingUpdate"
}

// mergeStringData encodes the text values of a Secret and moves them to its data, as the real server does.
func mergeStringData(object map[string]any) {
	texts, ok := object["stringData"].(map[string]any)
	if !ok {
		return
	}
	delete(object, "stringData")
	for name, text := range texts {
		encoded := base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(text)))
		_ = unstructured.SetNestedField(object, encoded, "data", name) // fails if the data is not a mapping
	}
}

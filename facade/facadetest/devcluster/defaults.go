package devcluster

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var (
	mutatingWebhooks = plain("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
		"mutatingwebhookconfigurations", false)
	validatingWebhooks = plain("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
		"validatingwebhookconfigurations", false)
)

// moreResources are served beside those of memapi, because clients expect them. Nothing acts on their objects, except
// for the configurations of webhooks.
var moreResources = []memapi.Resource{
	plain("", "v1", "PodTemplate", "podtemplates", true), plain("", "v1", "ReplicationController",
		"replicationcontrollers", true, "rc"),
	plain("apps", "v1", "ControllerRevision", "controllerrevisions", true),
	mutatingWebhooks, validatingWebhooks,
	plain("networking.k8s.io", "v1", "IngressClass", "ingressclasses", false),
	plain("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false),
	plain("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, "pc"),
	created("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
	created("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
	created("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false),
	created("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true),
	created("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false),
	created("authentication.k8s.io", "TokenReview", "tokenreviews", false),
}

func plain(group, version, kind, plural string, namespaced bool, short ...string) memapi.Resource {
	return memapi.Resource{
		Group: group, Version: version, Kind: kind, Plural: plural, Namespaced: namespaced, ShortNames: short,
		Plain: true,
	}
}

// created is a resource whose objects are answers, and are not stored.
func created(group, kind, plural string, namespaced bool) memapi.Resource {
	return memapi.Resource{
		Group: group, Version: "v1", Kind: kind, Plural: plural, Namespaced: namespaced, Plain: true,
		Verbs: []string{"create"},
	}
}

// defaultOf is a value that the real server fills in.
type defaultOf struct {
	path  []string
	value any
}

// defaults are those that clients rely on, by kind: kubectl dereferences them without a check.
var defaults = map[string][]defaultOf{
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

// applyDefaults fills in the values that are missing. It is called ahead of every write.
func applyDefaults(of memapi.Resource, object map[string]any) {
	if of.Kind == "Secret" && of.Group == "" {
		mergeStringData(object)
	}
	for _, one := range defaults[of.Group+"/"+of.Kind] {
		if _, found, err := unstructured.NestedFieldNoCopy(object, one.path...); found || err != nil {
			continue
		}
		// The optional structures are filled only below the spec that the client has sent.
		if len(one.path) > 1 && object[one.path[0]] == nil || len(one.path) > 3 && !rolls(object) {
			continue
		}
		_ = unstructured.SetNestedField(object, one.value, one.path...) // fails for an object that is invalid anyway
	}
	if of.Kind == "Service" && of.Group == "" {
		giveAddress(object)
	}
}

// giveAddress sets the address of a Service, for clients that wait for it. The address follows from the name, so that a
// Service that is replaced keeps it.
func giveAddress(service map[string]any) {
	spec, ok := service["spec"].(map[string]any)
	if !ok || at(spec, "clusterIP") != "" || spec["type"] == "ExternalName" {
		return
	}
	sum := sha256.Sum256([]byte(at(service, "metadata", "namespace") + "/" + at(service, "metadata", "name")))
	address := fmt.Sprintf("10.0.%d.%d", sum[0], sum[1])
	spec["clusterIP"], spec["clusterIPs"] = address, []any{address}
}

// rolls is false for a Deployment with another strategy, which must not have parameters of a rolling update.
func rolls(object map[string]any) bool {
	strategy, _, _ := unstructured.NestedString(object, "spec", "strategy", "type")
	return strategy == "RollingUpdate"
}

// mergeStringData moves the values of a Secret that are text to the encoded ones.
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

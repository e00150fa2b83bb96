package devcluster

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// column is one column that kubectl prints after the name. Columns with a positive priority are only printed by "-o
// wide".
type column struct {
	name     string
	priority int32
	cell     func(object map[string]any, age string) any
}

// builtInColumns holds the columns of built-in kinds, by group and kind. They equal those of the real server.
var builtInColumns = map[string][]column{
	"/ConfigMap": {count("Data", "data", "binaryData"), age},
	"/Secret":    {text("Type", "type"), count("Data", "data"), age},
	"/Namespace": {phaseColumn("Status"), age},
	"/Node": {{"Status", 0, nodeReadiness}, {"Roles", 0, noneCell}, age, text("Version", "status", "nodeInfo",
		"kubeletVersion")},
	"/Pod": {
		{"Ready", 0, podReady}, {"Status", 0, podStatus}, {"Restarts", 0, podRestarts}, age,
		wide(text("IP", "status", "podIP")), wide(text("Node", "spec", "nodeName")),
	},
	"/Service": {
		text("Type", "spec", "type"), text("Cluster-IP", "spec", "clusterIP"), {"External-IP", 0, noneCell},
		{"Port(s)", 0, servicePorts}, age, wide(selector("Selector", "spec", "selector")),
	},
	"/ServiceAccount": {count("Secrets", "secrets"), age},
	"/PersistentVolumeClaim": {
		phaseColumn("Status"), text("Volume", "spec", "volumeName"), text("Capacity", "status", "capacity", "storage"),
		{"Access Modes", 0, accessModes}, text("StorageClass", "spec", "storageClassName"), age,
	},
	"/PersistentVolume": {
		text("Capacity", "spec", "capacity", "storage"), {"Access Modes", 0, accessModes},
		text("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"), phaseColumn("Status"),
		text("Claim", "spec", "claimRef", "name"), text("StorageClass", "spec", "storageClassName"), age,
	},
	"/Event": {
		{"Last Seen", 0, lastSeen}, text("Type", "type"), text("Reason", "reason"), {"Object", 0, involvedObject},
		text("Message", "message"),
	},
	"/Endpoints": {{"Endpoints", 0, noneCell}, age},
	"apps/Deployment": {
		{"Ready", 0, readyRatio("readyReplicas")}, number("Up-to-date", "status", "updatedReplicas"),
		number("Available", "status", "availableReplicas"), age, wide(containers), wide(images),
		wide(selector("Selector", "spec", "selector", "matchLabels")),
	},
	"apps/StatefulSet": {{"Ready", 0, readyRatio("readyReplicas")}, age, wide(containers), wide(images)},
	"apps/ReplicaSet": {
		number("Desired", "spec", "replicas"), number("Current", "status", "replicas"),
		number("Ready", "status", "readyReplicas"), age, wide(containers), wide(images),
	},
	"apps/DaemonSet": {
		number("Desired", "status", "desiredNumberScheduled"), number("Current", "status", "currentNumberScheduled"),
		number("Ready", "status", "numberReady"), number("Up-to-date", "status", "updatedNumberScheduled"),
		number("Available", "status", "numberAvailable"),
		selector("Node Selector", "spec", "template", "spec", "nodeSelector"), age,
	},
	"batch/Job": {{"Status", 0, jobStatus}, {"Completions", 0, jobCompletions}, {"Duration", 0, jobDuration}, age},
	"batch/CronJob": {
		text("Schedule", "spec", "schedule"), text("Timezone", "spec", "timeZone"), {"Suspend", 0, suspendedCell},
		{"Active", 0, lengthCell("status", "active")}, {"Last Schedule", 0, elapsedCell("status", "lastScheduleTime")},
		age,
	},
	"networking.k8s.io/Ingress": {
		text("Class", "spec", "ingressClassName"), {"Hosts", 0, ingressHosts}, {"Address", 0, emptyCell},
		{"Ports", 0, ingressPorts}, age,
	},
	"networking.k8s.io/NetworkPolicy": {selector("Pod-Selector", "spec", "podSelector", "matchLabels"), age},
	"coordination.k8s.io/Lease":       {text("Holder", "spec", "holderIdentity"), age},
	"policy/PodDisruptionBudget": {
		text("Min Available", "spec", "minAvailable"), text("Max Unavailable", "spec", "maxUnavailable"),
		number("Allowed Disruptions", "status", "disruptionsAllowed"), age,
	},
	"storage.k8s.io/StorageClass": {
		text("Provisioner", "provisioner"), text("ReclaimPolicy", "reclaimPolicy"),
		text("VolumeBindingMode", "volumeBindingMode"), text("AllowVolumeExpansion", "allowVolumeExpansion"), age,
	},
	"rbac.authorization.k8s.io/Role":                              {createdAt},
	"rbac.authorization.k8s.io/ClusterRole":                       {createdAt},
	"rbac.authorization.k8s.io/RoleBinding":                       {{"Role", 0, roleRef}, age},
	"rbac.authorization.k8s.io/ClusterRoleBinding":                {{"Role", 0, roleRef}, age},
	"apiextensions.k8s.io/CustomResourceDefinition":               {createdAt},
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":   {count("Webhooks", "webhooks"), age},
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration": {count("Webhooks", "webhooks"), age},
}

// Columns that several kinds have in common.
var (
	age       = column{"Age", 0, func(_ map[string]any, age string) any { return age }}
	createdAt = column{"Created At", 0, func(o map[string]any, _ string) any {
		return at(o, "metadata",
			"creationTimestamp")
	}}
	containers = column{"Containers", 0, func(o map[string]any, _ string) any { return ofContainers(o, "name") }}
	images     = column{"Images", 0, func(o map[string]any, _ string) any { return ofContainers(o, "image") }}
)

// unset is the text for a field that is not set, as in the real server.
const unset = "<none>"

func noneCell(map[string]any, string) any  { return unset }
func emptyCell(map[string]any, string) any { return "" }

// wide returns the column for "-o wide" only.
func wide(c column) column {
	c.priority = 1
	return c
}

// at returns a field as text, or an empty text if the field is not set.
func at(object map[string]any, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if !found || err != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// integer returns a field as a number, or 0 if it is not set.
func integer(object map[string]any, path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(object, path...)
	return value
}

func text(name string, path ...string) column {
	return column{name, 0, func(o map[string]any, _ string) any {
		if value := at(o, path...); value != "" {
			return value
		}
		return unset
	}}
}

// number returns a column with a field as a number, which is 0 if the field is not set.
func number(name string, path ...string) column {
	return column{name, 0, func(o map[string]any, _ string) any { return integer(o, path...) }}
}

// phaseColumn returns a column with the phase of an object. An object that is being deleted is shown as terminating.
func phaseColumn(name string) column {
	return column{name, 0, func(o map[string]any, _ string) any {
		if at(o, "metadata", "deletionTimestamp") != "" {
			return "Terminating"
		}
		return at(o, "status", "phase")
	}}
}

// count returns a column with the total number of entries of the fields.
func count(name string, fields ...string) column {
	return column{name, 0, func(o map[string]any, _ string) any {
		total := int64(0)
		for _, field := range fields {
			one, _ := lengthCell(field)(o, "").(int64)
			total += one
		}
		return total
	}}
}

// lengthCell returns a function for the number of entries of a list or a map.
func lengthCell(path ...string) func(map[string]any, string) any {
	return func(o map[string]any, _ string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
		switch value := value.(type) {
		case map[string]any:
			return int64(len(value))
		case []any:
			return int64(len(value))
		default:
			return int64(0)
		}
	}
}

// elapsedCell returns a function for the time that has passed since the time in a field, such as "5m".
func elapsedCell(path ...string) func(map[string]any, string) any {
	return func(o map[string]any, _ string) any {
		then, err := time.Parse(time.RFC3339, at(o, path...))
		if err != nil {
			return unset
		}
		return metatable.ConvertToHumanReadableDateType(metav1.NewTime(then))
	}
}

// selector returns a column with labels, sorted by name.
func selector(name string, path ...string) column {
	return column{name, 0, func(o map[string]any, _ string) any {
		labels, _, _ := unstructured.NestedStringMap(o, path...)
		var all []string
		for key, value := range labels {
			all = append(all, key+"="+value)
		}
		sort.Strings(all)
		return orNone(all)
	}}
}

func orNone(all []string) string {
	if len(all) == 0 {
		return unset
	}
	return strings.Join(all, ",")
}

// items returns the maps in a list; other items are skipped.
func items(object map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	entries, _ := list.([]any)
	var all []map[string]any
	for _, entry := range entries {
		if one, ok := entry.(map[string]any); ok {
			all = append(all, one)
		}
	}
	return all
}

func ofContainers(object map[string]any, field string) string {
	var all []string
	for _, one := range items(object, "spec", "template", "spec", "containers") {
		all = append(all, at(one, field))
	}
	return orNone(all)
}

// readyRatio returns a function for the ready replicas out of the requested ones.
func readyRatio(ready string) func(map[string]any, string) any {
	return func(o map[string]any, _ string) any {
		return fmt.Sprintf("%d/%d", integer(o, "status", ready), integer(o, "spec", "replicas"))
	}
}

func podReady(o map[string]any, _ string) any {
	ready := 0
	for _, one := range items(o, "status", "containerStatuses") {
		if one["ready"] == true {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(items(o, "spec", "containers")))
}

func podStatus(o map[string]any, _ string) any {
	switch {
	case at(o, "metadata", "deletionTimestamp") != "":
		return "Terminating"
	case at(o, "status", "reason") != "":
		return at(o, "status", "reason")
	case at(o, "status", "phase") != "":
		return at(o, "status", "phase")
	default:
		return "Pending"
	}
}

func podRestarts(o map[string]any, _ string) any {
	total := int64(0)
	for _, one := range items(o, "status", "containerStatuses") {
		total += integer(one, "restartCount")
	}
	return fmt.Sprint(total)
}

// servicePorts returns the ports with their node ports and protocols. TCP is the default protocol.
func servicePorts(o map[string]any, _ string) any {
	var all []string
	for _, port := range items(o, "spec", "ports") {
		protocol := at(port, "protocol")
		if protocol == "" {
			protocol = "TCP"
		}
		number := at(port, "port")
		if node := at(port, "nodePort"); node != "" {
			number += ":" + node
		}
		all = append(all, number+"/"+protocol)
	}
	return orNone(all)
}

// accessModes returns the access modes in the abbreviations of kubectl.
func accessModes(o map[string]any, _ string) any {
	short := map[string]string{
		"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
	}
	modes, _, _ := unstructured.NestedStringSlice(o, "spec", "accessModes")
	var all []string
	for _, mode := range modes {
		all = append(all, short[mode])
	}
	return strings.Join(all, ",")
}

// lastSeen returns the time of the latest occurrence of an event. The field depends on the API of the client that
// recorded it.
func lastSeen(o map[string]any, age string) any {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}} {
		if at(o, path...) != "" {
			return elapsedCell(path...)(o, age)
		}
	}
	return unset
}

func involvedObject(o map[string]any, _ string) any {
	return strings.ToLower(at(o, "involvedObject", "kind")) + "/" + at(o, "involvedObject", "name")
}

// conditionIs reports whether the object has the condition with the status True.
func conditionIs(o map[string]any, kind string) bool {
	return slices.ContainsFunc(items(o, "status", "conditions"), func(one map[string]any) bool {
		return one["type"] == kind && one["status"] == "True"
	})
}

func nodeReadiness(o map[string]any, _ string) any {
	if conditionIs(o, "Ready") {
		return "Ready"
	}
	return "NotReady"
}

// jobStatus returns the first condition that applies; the order is that of the real server.
func jobStatus(o map[string]any, _ string) any {
	for _, kind := range []string{"Complete", "Failed", "Suspended", "FailureTarget"} {
		if conditionIs(o, kind) {
			return kind
		}
	}
	if at(o, "metadata", "deletionTimestamp") != "" {
		return "Terminating"
	}
	return "Running"
}

func suspendedCell(o map[string]any, _ string) any {
	if at(o, "spec", "suspend") == "true" {
		return "True"
	}
	return "False"
}

func jobCompletions(o map[string]any, _ string) any {
	return fmt.Sprintf("%d/%d", integer(o, "status", "succeeded"), max(1, integer(o, "spec", "completions")))
}

func jobDuration(o map[string]any, _ string) any {
	begun, err := time.Parse(time.RFC3339, at(o, "status", "startTime"))
	if err != nil {
		return ""
	}
	ended, err := time.Parse(time.RFC3339, at(o, "status", "completionTime"))
	if err != nil {
		ended = time.Now()
	}
	return duration.HumanDuration(ended.Sub(begun))
}

func ingressHosts(o map[string]any, _ string) any {
	var all []string
	for _, rule := range items(o, "spec", "rules") {
		if host := at(rule, "host"); host != "" {
			all = append(all, host)
		}
	}
	if len(all) == 0 {
		return "*"
	}
	return strings.Join(all, ",")
}

func ingressPorts(o map[string]any, _ string) any {
	if len(items(o, "spec", "tls")) > 0 {
		return "80, 443"
	}
	return "80"
}

func roleRef(o map[string]any, _ string) any {
	return at(o, "roleRef", "kind") + "/" + at(o, "roleRef", "name")
}

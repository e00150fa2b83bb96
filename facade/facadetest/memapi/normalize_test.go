package memapi_test

import (
	"fmt"
	"slices"
	"strings"
)

// normal returns a body without the differences between any two servers: times are removed, and uids and versions are
// replaced by the order of their first appearance.
func (p *player) normal(body map[string]any, r request) any {
	if body == nil {
		return nil
	}
	if body["kind"] == "Status" && r.comparesMessages {
		if details, _ := body["details"].(map[string]any); details["uid"] != nil {
			number(p.uidOrdinals, details, "uid")
		}
		return inOrder(body)
	}
	if body["kind"] == "Status" {
		return refusal(body)
	}
	if items, ok := body["items"].([]any); ok {
		var all []any
		for _, item := range items {
			one, _ := item.(map[string]any)
			one["apiVersion"], one["kind"] = nil, nil
			if metadata, _ := one["metadata"].(map[string]any); metadata["name"] != "kube-root-ca.crt" {
				all = append(all, p.normal(one, r))
			}
		}
		return map[string]any{"kind": body["kind"], "apiVersion": body["apiVersion"], "items": all}
	}
	metadata, _ := body["metadata"].(map[string]any)
	books, _ := metadata["managedFields"].([]any)
	for _, item := range books {
		delete(item.(map[string]any), "time")
	}
	// The entries are in the order of their times in seconds; two of one second have a random order.
	slices.SortStableFunc(books, func(a, b any) int { return strings.Compare(written(a), written(b)) })
	if !r.comparesManagedFields {
		delete(metadata, "managedFields")
	}
	if r.kind == pods {
		withoutDefaults(body)
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if metadata[name] != nil {
			metadata[name] = "set"
		}
	}
	if name, _ := metadata["name"].(string); strings.HasPrefix(name, "g-") && len(name) == len("g-")+5 {
		metadata["name"] = "g-and-five-more"
	}
	for name, ordinals := range map[string]map[string]int{"resourceVersion": p.versionOrdinals, "uid": p.uidOrdinals} {
		number(ordinals, metadata, name)
	}
	return body
}

// written returns the operation, the manager and the subresource of an entry of managedFields.
func written(item any) string {
	fields, _ := item.(map[string]any)
	return fmt.Sprint(fields["operation"], " ", fields["manager"], " ", fields["subresource"])
}

// number replaces a value by the order of its first appearance.
func number(ordinals map[string]int, of map[string]any, name string) {
	text, _ := of[name].(string)
	if _, seen := ordinals[text]; !seen {
		ordinals[text] = len(ordinals) + 1
	}
	of[name] = ordinals[text]
}

// withoutDefaults removes the fields with default values from a pod.
func withoutDefaults(pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	var kept []any
	containers, _ := spec["containers"].([]any)
	for _, item := range containers {
		one, _ := item.(map[string]any)
		ports, _ := one["ports"].([]any)
		kept = append(kept, map[string]any{
			"name": one["name"], "image": one["image"], "env": one["env"], "ports": len(ports),
		})
	}
	pod["spec"] = kept
	delete(pod, "status")
	metadata, _ := pod["metadata"].(map[string]any)
	delete(metadata, "generation")
}

// inOrder returns a refusal with sorted causes, and without its message if it has several causes.
func inOrder(status map[string]any) any {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	if len(causes) > 0 {
		slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		details["causes"] = slices.CompactFunc(causes, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
		delete(status, "message") // its causes are in another order, and may be repeated
	}
	return status
}

// refusal returns the reason of an error and the names of its fields.
func refusal(status map[string]any) any {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	fields := []string{}
	for _, item := range causes {
		one, _ := item.(map[string]any)
		field, _ := one["field"].(string)
		field, _, _ = strings.Cut(field, "[")
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return map[string]any{"status": status["status"], "reason": status["reason"], "fields": fields}
}

package memapi_test

import (
	"slices"
	"strings"
)

// normal is a body without what differs between any two servers: times, and the values of uids and versions, of which
// only remains which are the same.
func (p *player) normal(body map[string]any) any {
	if body == nil {
		return nil
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
				all = append(all, p.normal(one))
			}
		}
		return map[string]any{"kind": body["kind"], "apiVersion": body["apiVersion"], "items": all}
	}
	metadata, _ := body["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if metadata[name] != nil {
			metadata[name] = "set"
		}
	}
	if name, _ := metadata["name"].(string); strings.HasPrefix(name, "g-") && len(name) == len("g-")+5 {
		metadata["name"] = "g-and-five-more"
	}
	for name, ordinals := range map[string]map[string]int{"resourceVersion": p.ordinal, "uid": p.uids} {
		text, _ := metadata[name].(string)
		if _, seen := ordinals[text]; !seen {
			ordinals[text] = len(ordinals) + 1
		}
		metadata[name] = ordinals[text]
	}
	return body
}

// refusal is the reason of an error, and the fields it names.
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

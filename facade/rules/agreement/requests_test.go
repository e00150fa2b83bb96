package agreement_test

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
)

// request is one request of the table.
type request struct {
	operation, subresource string
	object, old            map[string]any
	namespace              string // empty is "ns"
}

func (r request) in() string { return cmp.Or(r.namespace, "ns") }

// namespacedCreations returns creations in several namespaces.
func namespacedCreations() (all []request) {
	for _, namespace := range []string{
		"ns", "shop", "team-a", "team-b", "team-x", "team-a-test", "team-1-test", "kube-system",
		"pr-12", "pr-x", "xpr-12",
	} {
		all = append(all, request{operation: "CREATE", object: object(nil, nil), namespace: namespace})
	}
	return all
}

func object(metadata, more map[string]any) map[string]any {
	all := map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}
	if metadata != nil {
		metadata["name"] = "w"
		all["metadata"] = metadata
	}
	for key, value := range more {
		all[key] = value
	}
	return all
}

// requests returns requests with each object as the new and as the old one.
func requests() (all []request) {
	for _, one := range objects() {
		other := object(map[string]any{"annotations": map[string]any{"a": "x"}}, map[string]any{"spec": 1.5})
		all = append(all,
			request{operation: "CREATE", object: one},
			request{operation: "UPDATE", object: one, old: other},
			request{operation: "UPDATE", object: other, old: one},
			request{operation: "UPDATE", subresource: "status", object: one, old: other},
			request{operation: "UPDATE", subresource: "scale", object: one, old: other},
			request{operation: "CONNECT", subresource: "exec", object: one},
			request{operation: "DELETE", old: one},
		)
	}
	return append(all, ownWrites()...)
}

// ownWrites returns updates as the operator writes them, and others with one difference.
func ownWrites() (all []request) {
	const ours, finalizer = "test.example.org/a", "test.example.org/finalizer"
	metadata := func(deleting bool, annotations map[string]any, finalizers ...any) map[string]any {
		made := map[string]any{"resourceVersion": "1", "generation": int64(1)}
		if annotations != nil {
			made["annotations"] = annotations
		}
		if finalizers != nil {
			made["finalizers"] = finalizers
		}
		if deleting {
			made["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		return made
	}
	type texts = map[string]any
	states := []map[string]any{
		metadata(false, nil), metadata(false, texts{ours: "x"}), metadata(false, texts{ours: "y", "a": "x"}),
		metadata(false, texts{"a": "x"}), metadata(false, texts{"test.example.org.evil/a": "x"}),
		metadata(false, texts{"a": "y"}, finalizer), metadata(false, nil, finalizer),
		metadata(false, nil, "b/c", finalizer), metadata(false, nil, "b/c"),
		metadata(false, texts{}, "d/e", "b/c"), metadata(true, nil, "b/c", finalizer),
		metadata(true, nil, "b/c"), metadata(true, texts{ours: "x"}), metadata(true, nil, "d/e"), metadata(true, nil),
	}
	more := metadata(false, texts{ours: "x"}, finalizer)
	more["labels"], more["managedFields"] = map[string]any{"tier": "prod"}, []any{}
	states = append(states, more)
	fields := []map[string]any{
		nil, {"spec": map[string]any{"x": int64(1)}}, {"spec": map[string]any{"x": 1.0}}, {"data": nil},
	}
	for i, before := range states {
		for j, after := range states {
			of, to := fields[(i+j)%2], fields[(i+j)%2]
			if (i+j)%5 == 0 {
				to = fields[(i+j)%len(fields)]
			}
			one := request{operation: "UPDATE"}
			one.old, one.object = object(maps.Clone(before), of), object(maps.Clone(after), to)
			if all = append(all, one); (i+j)%4 == 0 {
				one.subresource = "status"
				all = append(all, one)
			}
		}
	}
	return all
}

// wideWrites returns own writes whose comparison would cost an API server too much.
func wideWrites() []request {
	before, after := map[string]any{}, map[string]any{"test.example.org/a": ""}
	var finalizers []any
	for i := range 50_000 {
		before[strconv.Itoa(i)], after[strconv.Itoa(i)] = "", ""
		finalizers = append(finalizers, strconv.Itoa(i))
	}
	dying := func(finalizers []any) map[string]any {
		return map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
	}
	ours := map[string]any{"annotations": map[string]any{"test.example.org/a": ""}}
	return []request{
		{operation: "UPDATE", old: object(map[string]any{"annotations": before}, nil),
			object: object(map[string]any{"annotations": after}, nil)},
		{operation: "UPDATE", old: object(dying(finalizers), nil), object: object(dying(finalizers[:40_000]), nil)},
		{operation: "UPDATE", old: object(map[string]any{}, before), object: object(ours, before)},
	}
}

func objects() []map[string]any {
	all := []map[string]any{
		object(nil, nil), object(map[string]any{"annotations": nil, "labels": nil}, map[string]any{"spec": nil}),
		object(map[string]any{"annotations": "a", "labels": []any{"a"}}, map[string]any{"spec": "x"}),
		object(map[string]any{}, map[string]any{"metadata": nil, "spec": []any{"x"}}),
		object(map[string]any{"annotations": map[string]any{
			"Example.org/a.b-c_d": "", "a": "y", "c": "y", "d": "z", "e": "y",
		}}, map[string]any{"spec": map[string]any{`in.a/"b`: nil, "x": map[string]any{"y": nil}}}),
		object(nil, map[string]any{"spec": map[string]any{"x": int64(1)<<53 + 1}}),
		object(nil, map[string]any{"spec": map[string]any{"x": float64(1 << 60)}}),
		object(nil, map[string]any{"spec": map[string]any{"x": 1e300}}),
	}
	for _, text := range []any{
		"x", "", specialCharacters, nil, int64(5), "5", "+5", "4", "-5", "007", "12", "5.0", " 5", "5\n", "x5", "+",
		"-",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", strings.Repeat("0", 62) + "5",
		strings.Repeat("0", 99) + "5", strings.Repeat("x", 100<<10),
	} {
		all = append(all, object(map[string]any{
			"annotations": map[string]any{"a": text}, "labels": map[string]any{"n": text, "tier": "prod"},
		}, nil))
	}
	for _, value := range values {
		all = append(all, object(nil, map[string]any{"spec": map[string]any{"x": value}}))
	}
	return all
}

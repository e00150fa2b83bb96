package agreement_test

import "strings"

// request is one of the table.
type request struct {
	operation, subresource string
	object, old            map[string]any
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

// requests are about all objects, as what is to be, and as what is.
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
	return all
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
		"x", "", nasty, nil, int64(5), "5", "+5", "4", "-5", "007", "12", "5.0", " 5", "5\n", "x5", "+", "-",
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

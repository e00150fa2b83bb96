package memapi_test

import "fmt"

const pods = "pods"

// applies returns the requests of server-side apply: lists by key, sets, atomic values, conflicts, force, omitted
// fields, and managedFields.
func applies() []request {
	var all []request
	by := func(manager, kind, name, sub, body, more string) {
		all = append(all, request{
			method: "PATCH", kind: kind, name: name, subresource: sub, contentType: "application/apply-patch+yaml",
			body:  body,
			query: "fieldManager=" + manager + more, comparesMessages: true, comparesManagedFields: true,
		})
	}
	other := func(manager, method, kind, name, sub, form, body string) {
		all = append(all, request{
			method: method, kind: kind, name: name, subresource: sub, contentType: form, body: body,
			query: "fieldManager=" + manager, comparesMessages: true,
			comparesManagedFields: name == "ap", // memapi tracks the fields of an object from its first apply
		})
	}
	apply := func(manager, spec, more string) { by(manager, gizmos, "ap", "", gizmo("ap", spec), more) }
	apply("ann", `{"size":"small","parts":[{"name":"a","weight":1}],"tags":["x"],"steps":["1"]}`, "")
	apply("ann", `{"size":"small","parts":[{"name":"a","weight":1}],"tags":["x"],"steps":["1"]}`, "")
	apply("bob", `{"size":"small","parts":[{"name":"b","weight":2}],"tags":["y"]}`, "")
	apply("bob", `{"size":"large"}`, "")
	apply("bob", `{"size":"large","parts":[{"name":"a","weight":2}]}`, "")
	apply("bob", `{"size":"large","parts":[{"name":"a","weight":2}],"tags":["x","z"]}`, "&force=true")
	apply("ann", `{"parts":[],"tags":["x"],"steps":["1","2"]}`, "")
	apply("cat", `{"steps":["3"]}`, "")
	apply("cat", `{"deep":{"colour":"red"},"free":{"a":{"b":[1]}},"limits":{"q":1}}`, "")
	apply("cat", `{"unknown":1}`, "")
	apply("cat", `{"replicas":"x"}`, "")
	apply("cat", `{"replicas":11}`, "")
	apply("cat", `{"parts":[{"weight":1}]}`, "")
	apply("cat", `{"parts":[{"name":"a"},{"name":"a"}]}`, "")
	apply("cat", `{}`, "")
	apply("", `{}`, "")
	by("dan", gizmos, "ap", "status", gizmo("ap", `{"size":"small"},"status":{"phase":"ready"}`), "")
	by("dan", gizmos, "ap", "", gizmo("ap", `{"code":"xx"},"status":{"phase":"steady"}`), "")
	by("eve", gizmos, "ap", "", `
apiVersion: memapi.example.org/v1
kind: Gizmo
metadata: {name: ap, labels: {of: eve}, finalizers: [example.org/eve]}
`, "")
	by("ann", gizmos, "ap", "", gizmo("other", `{}`), "")
	by("ann", gizmos, "no", "", gizmo("no", `{"size":"huge"}`), "")
	other("fay", "PATCH", gizmos, "ap", "", mergePatchType,
		`{"spec":{"code":"yy"},"metadata":{"finalizers":["example.org/fay"]}}`)
	other("fay", "PATCH", gizmos, "ap", "status", mergePatchType, `{"status":{"phase":"steady"}}`)
	apply("gus", `{"code":"zz"}`, "")
	other("hal", "POST", gizmos, "", "", jsonContentType, gizmo("made", `{"size":"small","parts":[{"name":"a"}]}`))
	other("ida", "PATCH", gizmos, "made", "", mergePatchType, `{"spec":{"code":"yy"}}`)
	by("ann", gizmos, "made", "", gizmo("made", `{"size":"large","code":"zz","parts":[{"name":"b"}]}`), "")
	by("ann", gizmos, "made", "", gizmo("made", `{"size":"small","parts":[{"name":"b"}]}`), "")
	by("ann", gizmos, "made", "", gizmo("made", `{"size":"small","parts":[]}`), "&dryRun=All")
	other("ann", "GET", gizmos, "made", "", "", "")
	all[len(all)-1].query = ""

	data := func(name, data string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":%s}`, name, data)
	}
	by("ann", configmaps, "ap", "", data("ap", `{"a":"1"}`), "")
	by("bob", configmaps, "ap", "", data("ap", `{"b":"1"}`), "")
	by("bob", configmaps, "ap", "", data("ap", `{"a":"2"}`), "")
	by("bob", configmaps, "ap", "", data("ap", `{"a":"2"}`), "&force=true")
	by("bob", configmaps, "ap", "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ap"},"what":1}`, "")
	pod := func(manager, labels, containers string) {
		by(manager, pods, "ap", "", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"ap","labels":%s},"spec":{"containers":[%s]}}`, labels,
			containers,
		), "")
	}
	pod("ann", `{"l":"1"}`, `{"name":"a","image":"i","env":[{"name":"E","value":"1"}],"ports":[{"containerPort":80}]}`)
	pod("bob", `{"m":"1"}`, `{"name":"a","image":"i"}`)
	pod("bob", `{"m":"1"}`, `{"name":"a","image":"j"}`)
	pod("cat", `{"l":"2"}`, `{"name":"a","image":"i"}`)
	return append(all, rewrites()...)
}

// rewrites returns requests that change managedFields: fields move to another manager, or all entries are removed.
func rewrites() []request {
	var all []request
	for _, one := range [][2]string{{gizmos, "spec"}, {configmaps, "data"}} {
		kind, field := one[0], one[1]
		at := func(method, form, body, query string) {
			all = append(all, request{
				method: method, kind: kind, name: "books", contentType: form, body: body, query: query,
				comparesMessages:      true,
				comparesManagedFields: true,
			})
		}
		of := func(fields string) string { return object(kind, "books", "", fmt.Sprintf(`%q:%s`, field, fields)) }
		apply := func(manager, fields string) {
			at("PATCH", "application/apply-patch+yaml", of(fields), "fieldManager="+manager)
		}
		edit := func(form, body string) { at("PATCH", form, body, "fieldManager=editor") }
		apply("ann", `{"size":"small","code":"xx"}`)
		edit(mergePatchType, fmt.Sprintf(`{%q:{"code":"yy"}}`, field))
		entry := func(manager, operation, field string) string {
			return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":%q,"time":"2026-01-01T00:00:00Z",`+
				`"fieldsType":"FieldsV1","fieldsV1":%s}`, manager, operation, versionsOf[kind], field)
		}
		both := fmt.Sprintf(`{"f:%s":{"f:size":{},"f:code":{}}}`, field)
		edit("application/json-patch+json", `[{"op":"replace","path":"/metadata/managedFields","value":[`+
			entry("bob", "Apply", both)+`]},{"op":"replace","path":"/metadata/resourceVersion","value":"{rv}"}]`)
		edit("application/json-patch+json", `[{"op":"replace","path":"/metadata/managedFields","value":[]},`+
			`{"op":"replace","path":"/metadata/resourceVersion","value":"{old}"}]`)
		apply("bob", `{"size":"small"}`)
		apply("cat", `{"size":"large"}`)
		edit(mergePatchType, `{"metadata":{"managedFields":null,"labels":{"m":"1"}}}`)
		edit(mergePatchType, `{"metadata":{"managedFields":[{}]}}`)
		edit(mergePatchType, fmt.Sprintf(`{%q:{"code":"yy"}}`, field))
		apply("dan", `{"size":"large"}`)
		apply("dan", `{"size":"small"}`)
		edit(mergePatchType, `{"metadata":{"managedFields":[]}}`)
		at("PATCH", "application/apply-patch+yaml", of(`{}`), "fieldManager=dan&dryRun=All")
		edit("application/json-patch+json", `[{"op":"add","path":"/metadata/managedFields","value":[`+
			entry("bob", "Apply", both)+`]},{"op":"replace","path":"/metadata/resourceVersion","value":"{rv}"}]`)
		apply("bob", `{"code":"yy"}`)
	}
	return all
}

// dryRunRequests returns requests with dryRun, and those that show that nothing was stored.
func dryRunRequests() []request {
	var all []request
	at := func(method, name, form, body, query string) {
		all = append(all, request{
			method: method, kind: gizmos, name: name, contentType: form, body: body, query: query,
			comparesMessages: true,
		})
	}
	at("POST", "", jsonContentType, gizmo("dry", `{"size":"small"}`), "dryRun=All")
	at("POST", "", jsonContentType, gizmo("dry", `{"size":"huge"}`), "dryRun=All")
	at("GET", "dry", "", "", "")
	at("POST", "", jsonContentType, gizmo("dry", `{"size":"small"}`), "dryRun=Some")
	at("POST", "", jsonContentType, gizmo("dry", `{"size":"small"}`), "")
	at("PATCH", "dry", mergePatchType, `{"spec":{"size":"large"}}`, "dryRun=All")
	at("PATCH", "dry", mergePatchType, `{"spec":{"size":"small"}}`, "dryRun=All")
	at("DELETE", "dry", "", "", "dryRun=All")
	at("DELETE", "dry", jsonContentType, `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, "")
	at("PATCH", "dry", mergePatchType, `{"metadata":{"finalizers":["example.org/hold"]}}`, "")
	at("DELETE", "dry", "", "", "dryRun=All")
	at("GET", "dry", "", "", "")
	at("PATCH", "dry", mergePatchType, `{"spec":{"size":"large"}}`, "force=true")
	return all
}

// deletions returns deletions with propagation policies. No garbage collector runs, so dependents are not deleted.
func deletions() []request {
	var all []request
	for _, kind := range []string{gizmos, configmaps} {
		at := func(method, name, form, body, query string) {
			all = append(all, request{
				method: method, kind: kind, name: name, contentType: form, body: body, query: query,
				comparesMessages: true,
			})
		}
		for i, policy := range []string{"Background", "Foreground", "Orphan", "Whatever"} {
			name := fmt.Sprintf("del%d", i)
			at("POST", "", jsonContentType, object(kind, name, `,"labels":{"del":"1"}`, content(kind, "")), "")
			at("DELETE", name, "", "", "propagationPolicy="+policy)
			at("GET", name, "", "", "")
			at("DELETE", name, jsonContentType, `{"propagationPolicy":"Foreground","orphanDependents":true}`, "")
			at("DELETE", name, jsonContentType,
				`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"}`, "")
			at("DELETE", name, "", "", "")
			at("DELETE", name, "", "", "orphanDependents=true")
			at("PATCH", name, mergePatchType, `{"metadata":{"finalizers":["foregroundDeletion"]}}`, "")
			at("PATCH", name, mergePatchType, `{"metadata":{"finalizers":null}}`, "")
		}
		at("POST", "", jsonContentType, object(kind, "many1", `,"labels":{"del":"2"}`, content(kind, "")), "")
		held := `,"labels":{"del":"2"},"finalizers":["e.org/x"]`
		at("POST", "", jsonContentType, object(kind, "many2", held, content(kind, "")), "")
		at("DELETE", "", "", "", "labelSelector=del%3D2")
		at("GET", "", "", "", "labelSelector=del%3D2")
		at("PATCH", "many2", mergePatchType, `{"metadata":{"finalizers":null}}`, "")
		at("PATCH", "del3", "application/strategic-merge-patch+json", `{"metadata":{"labels":{"s":"1"}}}`, "")
		at("PATCH", "del3", "text/plain", `{}`, "")
		all[len(all)-1].comparesMessages = kind == gizmos // the message for a built-in kind differs
		at("DELETE", "del3", "", "", "gracePeriodSeconds=0")
	}
	return all
}

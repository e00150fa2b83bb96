package memapi_test

import "fmt"

// gizmos have a schema and two versions.
const (
	gizmos             = "gizmos"
	formerGizmoVersion = "v1beta1"
)

func gizmo(name, spec string) string {
	return fmt.Sprintf(
		`{"apiVersion":"memapi.example.org/v1","kind":"Gizmo","metadata":{"name":%q},"spec":%s}`, name, spec,
	)
}

// specs returns one spec for each object: they cover refusals, defaults, pruning and acceptance by the schema.
func specs() []string {
	return []string{
		`{"size":"small"}`,
		`{"size":"huge"}`, `{}`, `null`, `[]`, `{"size":1}`, `{"size":null}`,
		`{"size":"small","unknown":1,"deep":{"what":2},"parts":[{"name":"a","x":1}]}`,
		`{"size":"small","replicas":0}`, `{"size":"small","replicas":10}`, `{"size":"small","replicas":1.5}`,
		`{"size":"small","replicas":"1"}`, `{"size":"small","replicas":null}`, `{"size":"small","replicas":5000000000}`,
		`{"size":"small","ratio":0}`, `{"size":"small","ratio":0.75}`, `{"size":"small","ratio":1}`,
		`{"size":"small","code":"a"}`, `{"size":"small","code":"abcde"}`, `{"size":"small","code":"A1"}`,
		`{"size":"small","day":"2020-02-30"}`, `{"size":"small","day":"2020-02-28"}`,
		`{"size":"small","port":80}`, `{"size":"small","port":"http"}`, `{"size":"small","port":true}`,
		`{"size":"small","maybe":null,"never":null,"always":null}`, `{"size":"small","deep":null}`,
		`{"size":"small","deep":{"level":2}}`, `{"size":"small","deep":"down"}`,
		`{"size":"small","either":{}}`, `{"size":"small","either":{"left":"1"}}`,
		`{"size":"small","either":{"left":"1","right":"2"}}`,
		`{"size":"small","parts":[{"name":"a"},{"name":"b","kind":null}]}`, `{"size":"small","parts":[{"weight":1}]}`,
		`{"size":"small","parts":[{"name":"a"},{"name":"a"}]}`, `{"size":"small","parts":[{"name":"a","weight":-1}]}`,
		`{"size":"small","parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`,
		`{"size":"small","parts":["a"]}`, `{"size":"small","tags":["a","b","a"]}`,
		`{"size":"small","tags":["a","abcdef"]}`, `{"size":"small","tags":null}`,
		`{"size":"small","steps":[]}`, `{"size":"small","steps":["a","a"]}`, `{"size":"small","steps":"a"}`,
		`{"size":"small","limits":{"a":1,"b":-1}}`, `{"size":"small","limits":{"a":1,"b":1,"c":1}}`,
		`{"size":"small","limits":{"a":"x"}}`,
		`{"size":"small","free":{"known":1,"unknown":{"any":[1,"a",null]}}}`, `{"size":"small","free":{"known":"a"}}`,
		`{"size":"small","inner":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","what":1},"data":{}}}`,
		`{"size":"small","inner":{"apiVersion":"v1","kind":"A","metadata":{"labels":{"a b":"1"}}}}`,
		`{"size":"small","inner":{"apiVersion":"v1","kind":"A","metadata":{"labels":1}}}`,
		`{"size":"small","inner":{"apiVersion":"a/b/c","kind":1}}`,
		`{"size":"small","inner":{"apiVersion":"","kind":"_"}}`,
		`{"size":"small","inner":{"kind":"ConfigMap"}}`, `{"size":"small","inner":{"apiVersion":"v1","kind":"-"}}`,
		`{"size":"huge","replicas":"x","code":"A1","tags":["a","a"],"parts":[{}]}`,
	}
}

// schemas returns the requests about schemas.
func schemas() []request {
	var all []request
	post := func(body, query string) {
		all = append(all, request{method: "POST", kind: gizmos, contentType: jsonContentType, body: body, query: query,
			comparesMessages: true})
	}
	for i, spec := range specs() {
		post(gizmo(fmt.Sprintf("s%d", i), spec), "")
	}
	much := `{"size":"small","unknown":1,"deep":{"what":2},"inner":{"apiVersion":"v1","kind":"A","metadata":{"no":1}}}`
	for _, mode := range []string{"Strict", "Warn", "Ignore", "Other"} {
		post(gizmo("strict", much), "fieldValidation="+mode)
	}
	post(`{"apiVersion":"memapi.example.org/v1","kind":"Gizmo","metadata":{"name":"bare"},"top":1}`, "")
	post(`{"apiVersion":"memapi.example.org/v1","kind":"Gizmo","metadata":{"name":"x","labels":{"a":1}},"spec":{}}`, "")
	at := func(method, sub, form, body, query string) {
		all = append(all, request{
			method: method, kind: gizmos, name: "a", subresource: sub, contentType: form, body: body, query: query,
			comparesMessages: true,
		})
	}
	post(gizmo("a", `{"size":"small","code":"abc"}`), "")
	for _, body := range []string{
		`{"spec":{"size":"huge"}}`, `{"spec":{"size":null}}`, `{"spec":{"unknown":1}}`, `{"spec":{"always":null}}`,
		`{"spec":{"deep":{"level":null,"colour":"red"}}}`, `{"spec":{"replicas":0,"code":"X"}}`, `{"spec":null}`,
		`{"status":{"phase":"ready"}}`, `{"spec":{"replicas":4},"status":{"phase":"wrong"}}`, `{"unknown":1}`,
	} {
		at("PATCH", "", mergePatchType, body, "")
	}
	at("PATCH", "", mergePatchType, `{"spec":{"unknown":1}}`, "fieldValidation=Strict")
	all[len(all)-1].comparesMessages = false // the message contains the whole object with its times
	for _, body := range []string{
		`{"status":{"phase":"wrong"}}`, `{"status":{"phase":"ready","what":1}}`, `{"status":{}}`, `{"status":"x"}`,
		`{"status":null}`, `{"spec":{"size":"huge"},"status":{"phase":"steady"}}`, `{"status":{"count":null}}`,
	} {
		at("PATCH", "status", mergePatchType, body, "")
	}
	at("PATCH", "", jsonPatchType, `[{"op":"replace","path":"/spec/size","value":"huge"}]`, "")
	at("PATCH", "", jsonPatchType, `[{"op":"add","path":"/spec/unknown","value":1}]`, "")
	for _, query := range []string{
		"fieldSelector=spec.size%3Dsmall", "fieldSelector=spec.size%21%3Dsmall", "fieldSelector=spec.code%3Dabc",
	} {
		all = append(all, request{method: "GET", kind: gizmos, query: query, comparesMessages: true})
	}
	return append(all, versions()...)
}

// versions returns requests in another version than the stored one.
func versions() []request {
	var all []request
	at := func(method, version, name, form, body string) {
		all = append(all, request{
			method: method, kind: gizmos, version: version, name: name, contentType: form, body: body,
			comparesMessages: true,
		})
	}
	former := func(name, spec string) string {
		return fmt.Sprintf(
			`{"apiVersion":"memapi.example.org/v1beta1","kind":"Gizmo","metadata":{"name":%q},"spec":%s}`, name, spec,
		)
	}
	at("GET", formerGizmoVersion, "a", "", "")
	at("POST", formerGizmoVersion, "", jsonContentType, former("f", `{"size":"huge","former":"x","code":"abc"}`))
	at("GET", "", "f", "", "")
	at("GET", formerGizmoVersion, "f", "", "")
	at("PATCH", "", "f", mergePatchType, `{"metadata":{"labels":{"l":"1"}}}`)
	at("PATCH", "", "f", mergePatchType, `{"spec":{"code":"XX"}}`)
	at("PATCH", "", "f", mergePatchType, `{"spec":{"code":"xx"}}`)
	at("PATCH", formerGizmoVersion, "f", mergePatchType, `{"spec":{"former":"y"}}`)
	at("PATCH", formerGizmoVersion, "f", mergePatchType, `{"spec":{"replicas":6}}`)
	at("PATCH", formerGizmoVersion, "a", mergePatchType, `{"spec":{"replicas":6}}`)
	at("GET", "", "a", "", "")
	at("POST", "", "", jsonContentType, former("g", `{"size":"small"}`))
	at("GET", formerGizmoVersion, "", "", "")
	return all
}

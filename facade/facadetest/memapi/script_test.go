package memapi_test

import (
	"fmt"
	"math/rand/v2"
)

// request is one line of the script. {uid} and {rv} stand for the uid and the version of the object, {old} for its
// previous version.
type request struct {
	method, kind, name, subresource string
	contentType, body               string
	query                           string
	// accept lists the media types of the answer, if it is not plain JSON.
	accept string
	// version is the version of the API, if it is not v1.
	version string
	// comparesMessages compares the messages of refusals, not only their reasons and fields.
	comparesMessages bool
	// comparesManagedFields compares managedFields as well.
	comparesManagedFields bool
}

const (
	mergePatchType  = "application/merge-patch+json"
	jsonPatchType   = "application/json-patch+json"
	jsonContentType = "application/json"
)

// The kinds of the script: one with a status subresource, one without, and a built-in one.
const (
	widgets    = "widgets"
	gadgets    = "gadgets"
	configmaps = "configmaps"
)

var kindsOf = map[string]string{widgets: "Widget", gadgets: "Gadget", configmaps: "ConfigMap", gizmos: "Gizmo"}

var versionsOf = map[string]string{
	widgets: "memapi.example.org/v1", gadgets: "memapi.example.org/v1", gizmos: "memapi.example.org/v1",
	configmaps: "v1",
}

// content returns the content of an object of the kind.
func content(kind, value string) string {
	if kind == configmaps {
		return fmt.Sprintf(`"data":{"owner":%q}`, value)
	}
	if kind == gizmos {
		return fmt.Sprintf(`"spec":{"size":"small","always":%q}`, value)
	}
	return fmt.Sprintf(`"spec":{"owner":%q}`, value)
}

func object(kind, name, metadata, rest string) string {
	return fmt.Sprintf(
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s},%s}`, versionsOf[kind], kindsOf[kind], name, metadata,
		rest,
	)
}

// requestsOfKind returns the fixed requests for each kind, valid and invalid ones.
func requestsOfKind(kind string) []request {
	at := func(method, sub, form, body string) request {
		return request{method: method, kind: kind, name: "a", subresource: sub, contentType: form, body: body}
	}
	merge := func(body string) request { return at("PATCH", "", mergePatchType, body) }
	status := func(body string) request { return at("PATCH", "status", mergePatchType, body) }
	json := func(body string) request { return at("PATCH", "", jsonPatchType, body) }
	finalizers := `,"finalizers":["example.org/hold"]`
	return []request{
		at("GET", "", "", ""), merge(`{}`), at("DELETE", "", "", ""), at(
			"PUT", "", jsonContentType, object(kind, "a", "", content(kind, "x")),
		),
		{method: "POST", kind: kind, contentType: jsonContentType, body: object(kind, "A_", "", content(kind, "x"))},
		{method: "POST", kind: kind, contentType: jsonContentType, body: object(
			kind, "a", `,"labels":{"bad key":"x"}`, content(kind, "x"),
		)},
		{method: "POST", kind: kind, contentType: jsonContentType, body: object(
			kind, "a", `,"resourceVersion":"5"`, content(kind, "x"),
		)},
		{method: "POST", kind: kind, contentType: jsonContentType,
			body: object(kind, "a", `,"labels":{"l":"1"}`, content(kind, "x"))},
		{method: "POST", kind: kind, contentType: jsonContentType, body: object(kind, "a", "", content(kind, "x"))},
		at("GET", "", "", ""),
		merge(`{}`), merge(`{"metadata":{"labels":{"l":"1"}}}`), merge(`{"metadata":{"labels":{"l":"2"}}}`), merge(
			`{"metadata":{"labels":{"l":null}}}`,
		),
		merge(`{"metadata":{"annotations":{"e/a":"1"}}}`), merge(
			`{"metadata":{"annotations":{"e/a":null}}}`,
		), merge(`{` + content(kind, "y") + `}`),
		merge(
			`{"metadata":{"uid":"{uid}","annotations":{"e/b":"1"}}}`,
		), merge(`{"metadata":{"uid":"other","annotations":{"e/b":"2"}}}`),
		merge(`{"metadata":{"uid":"other","resourceVersion":"{old}"}}`), merge(
			`{"metadata":{"resourceVersion":"{old}","annotations":{"e/b":"2"}}}`,
		),
		merge(
			`{"metadata":{"resourceVersion":"{rv}","annotations":{"e/b":"3"}}}`,
		), merge(`{"metadata":{"annotations":{"bad key":"1"}}}`),
		merge(
			`{"metadata":{"finalizers":["example.org/a","example.org/b"]}}`,
		), merge(`{"metadata":{"finalizers":null}}`), merge(`not json`),
		status(`{"status":{"phase":"ready"}}`), status(
			`{"metadata":{"annotations":{"e/s":"1"}},"status":{"phase":"steady"}}`,
		),
		status(
			`{"metadata":{"resourceVersion":"{old}"},"status":{"phase":"late"}}`,
		), status(`{"metadata":{"uid":"other"},"status":{"phase":"foreign"}}`),
		merge(`{"status":{"phase":"mixed"},"metadata":{"annotations":{"e/m":"1"}}}`),
		json(
			`[{"op":"test","path":"/metadata/resourceVersion","value":"{rv}"},` +
				`{"op":"add","path":"/metadata/finalizers","value":["example.org/hold"]}]`,
		),
		json(
			`[{"op":"test","path":"/metadata/resourceVersion","value":"{old}"},` +
				`{"op":"remove","path":"/metadata/finalizers"}]`,
		),
		json(`[{"op":"remove","path":"/metadata/nowhere"}]`), json(`[]`),
		at("PUT", "", jsonContentType, object(kind, "a", `,"resourceVersion":"{old}"`, content(kind, "z"))),
		at("PUT", "", jsonContentType, object(kind, "a", `,"resourceVersion":"{rv}"`+finalizers, content(kind, "z"))),
		at("PUT", "", jsonContentType, object(kind, "a", `,"resourceVersion":"{rv}"`+finalizers, content(kind, "z"))),
		at("DELETE", "", jsonContentType, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"other"}}`),
		at(
			"DELETE", "", jsonContentType,
			`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"{old}"}}`,
		),
		at("DELETE", "", "", ""), at("DELETE", "", "", ""), merge(
			`{"metadata":{"finalizers":["example.org/hold","example.org/more"]}}`,
		),
		merge(`{"metadata":{"annotations":{"e/d":"1"}}}`), merge(
			`{"metadata":{"finalizers":[],"annotations":{"e/d":"2"}}}`,
		), at("GET", "", "", ""),
		{method: "POST", kind: kind, contentType: jsonContentType, body: object(kind, "a", "", content(kind, "again"))},
		merge(`{"metadata":{"uid":"{old-uid}","annotations":{"e/a":"1"}}}`),
		{method: "POST", kind: kind, contentType: jsonContentType, body: fmt.Sprintf(
			`{"apiVersion":%q,"kind":%q,"metadata":{"generateName":"g-"},%s}`, versionsOf[kind], kindsOf[kind],
			content(kind, "x"),
		)},
		{method: "POST", kind: kind, contentType: jsonContentType,
			body: object(kind, "b", `,"labels":{"l":"1"}`, content(kind, "x"))},

		{method: "GET", kind: kind}, {method: "GET", kind: kind, query: "labelSelector=l%3D1"}, {
			method: "GET", kind: kind, query: "fieldSelector=metadata.name%3Da",
		},
		at(
			"DELETE", "", jsonContentType, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"{uid}"}}`,
		), {method: "GET", kind: kind},
	}
}

// randomScript returns a script of random requests about three objects. Equal seeds give equal scripts.
func randomScript(seed uint64, length int) []request {
	luck := rand.New(rand.NewPCG(seed, 1))
	one := func(of ...string) string { return of[luck.IntN(len(of))] }
	var script []request
	for range length {
		kind, name := one(widgets, gadgets, configmaps), one("r1", "r2", "r3")
		version := one("", "", `,"resourceVersion":"{rv}"`, `,"resourceVersion":"{old}"`)
		metadata := one(`"labels":{"l":"1"}`, `"labels":{"l":"2"}`, `"annotations":{"e/a":"1"}`,
			`"annotations":{"e/a":null}`,
			`"finalizers":["example.org/x"]`, `"finalizers":null`, `"finalizers":["example.org/y"]`)
		r := request{method: "PATCH", kind: kind, name: name, contentType: mergePatchType}
		switch luck.IntN(6) {
		case 0:
			r = request{
				method: "POST", kind: kind, contentType: jsonContentType,
				body: object(kind, name, one("", `,"finalizers":["example.org/x"]`), content(kind, one("a", "b"))),
			}
		case 1:
			r = request{method: "DELETE", kind: kind, name: name}
		case 2:
			r.body = fmt.Sprintf(`{"metadata":{%s%s}}`, metadata, version)
		case 3:
			r.body = fmt.Sprintf(`{%s}`, content(kind, one("a", "b", "c")))
		case 4:
			r.subresource, r.body = "status", fmt.Sprintf(`{"status":{"phase":%q}}`, one("a", "b"))
		default:
			r.method, r.contentType = "PUT", jsonContentType
			r.body = object(
				kind, name,
				one(
					`,"resourceVersion":"{rv}"`, `,"resourceVersion":"{old}"`,
					`,"resourceVersion":"{rv}","labels":{"l":"3"}`,
				),
				content(kind, one("a", "d")),
			)
		}
		script = append(script, r)
	}
	return script
}

package memapi_test

// The media types of clients that request only the metadata.
const (
	partialObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	partialList   = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// reads returns requests with the options of reads and with the media types of answers.
func reads() []request {
	var all []request
	for _, kind := range []string{gizmos, configmaps} {
		list := func(query string) {
			all = append(all, request{method: "GET", kind: kind, query: query, comparesMessages: true})
		}
		form := func(method, name, sub, form, body, accept string) {
			all = append(all, request{
				method: method, kind: kind, name: name, subresource: sub, contentType: form, body: body, accept: accept,
				comparesMessages: true,
			})
		}
		for _, query := range []string{
			"resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
			"resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Whatever",
			"resourceVersion=x", "resourceVersion=-1", "sendInitialEvents=true", "limit=x", "continue=x",
			"watch=true&sendInitialEvents=true", "watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
			"watch=true&resourceVersionMatch=Exact&resourceVersion=1&sendInitialEvents=true",
			"watch=true&resourceVersion=x", "labelSelector=a%20b", "fieldSelector=spec.nothing%3Dx",
		} {
			list(query)
		}
		all = append(all, request{method: "GET", kind: kind, name: "nobody", query: "resourceVersion=x",
			comparesMessages: true})
		made := object(kind, "meta", `,"labels":{"m":"1"}`, content(kind, "x"))
		form("POST", "", "", jsonContentType+"; charset=utf-8", made, "")
		form("PATCH", "meta", "", mergePatchType+"; charset=utf-8", `{"metadata":{"annotations":{"e/f":"1"}}}`, "")
		form("GET", "meta", "", "", "", partialObject)
		form("GET", "meta", "", "", "", "*/*")
		form("GET", "nobody", "", "", "", partialObject)
		form("GET", "", "", "", "", partialList)
		form("PATCH", "meta", "", mergePatchType, `{"metadata":{"annotations":{"e/f":"2"}}}`, partialObject)
		form("DELETE", "meta", "", "", "", partialObject)
	}
	// The real server waits some seconds for this version, and its answer contains its own version.
	return append(all, request{method: "GET", kind: gizmos, query: "resourceVersion=99999999999"})
}

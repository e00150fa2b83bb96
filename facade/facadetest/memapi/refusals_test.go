package memapi_test

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// What the real server does, and this one does not, is refused by its name.
func TestUnsupportedRequests(t *testing.T) {
	cases := map[string]struct {
		reason, method, path, body, form string
		accept, user                     string
		want                             string
	}{
		"Parameter": {
			reason: "a parameter may be what a client relies on", method: http.MethodGet,
			path: "/api/v1/configmaps?shardSelector=x", want: "the parameter shardSelector of a list",
		},
		"WrongVerb": {
			reason: "a parameter of other requests does nothing", method: http.MethodGet,
			path: "/api/v1/namespaces/default/configmaps/a?fieldManager=x", want: "the parameter fieldManager of a get",
		},
		"Former": {
			reason: "nothing is kept of what was before", method: http.MethodGet,
			path: "/api/v1/configmaps?resourceVersion=1&resourceVersionMatch=Exact",
			want: "lists of a former state (resourceVersionMatch=Exact)",
		},
		"Exec": {
			reason: "nothing runs in pods", method: http.MethodPost,
			path: "/api/v1/namespaces/default/pods/a/exec?command=date", want: "the subresource exec of pods",
		},
		"Log": {
			reason: "they write nothing either", method: http.MethodGet,
			path: "/api/v1/namespaces/default/pods/a/log?follow=true", want: "the subresource log of pods",
		},
		"Finalize": {
			reason: "namespaces go like other objects", method: http.MethodPut,
			path: "/api/v1/namespaces/a/finalize", body: `{}`, form: plain,
			want: "the subresource finalize of namespaces",
		},
		"Single": {
			reason: "watches are of collections, by a selector of the name", method: http.MethodGet,
			path: "/api/v1/namespaces/default/configmaps/a?watch=true", want: "the parameter watch of a get",
		},
		"Some": {
			reason: "of a collection, all goes", method: http.MethodDelete,
			path: "/api/v1/namespaces/default/configmaps?limit=1", want: "the parameter limit of a deletecollection",
		},
		"Table": {
			reason: "what is printed has columns of its own", method: http.MethodGet, path: "/api/v1/configmaps",
			accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
			want:   "answers in the form application/json;as=Table",
		},
		"Protobuf": {
			reason: "everything is JSON", method: http.MethodGet, path: "/api/v1/configmaps",
			accept: "application/vnd.kubernetes.protobuf",
			want:   "answers in the form application/vnd.kubernetes.protobuf",
		},
		"ProtobufBody": {
			reason: "so is what comes in", method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps",
			body: "k8s", form: "application/vnd.kubernetes.protobuf",
			want: "bodies in the form application/vnd.kubernetes.protobuf",
		},
		"YAML": {
			reason: "and no YAML, but for what is applied", method: http.MethodPost,
			path: "/api/v1/namespaces/default/configmaps", body: "kind: ConfigMap", form: "application/yaml",
			want: "bodies in the form application/yaml",
		},
		"Aggregated": {
			reason: "clients have to be content with a document for each group", method: http.MethodGet, path: "/apis",
			accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			want:   "answers in the form application/json;g=apidiscovery.k8s.io",
		},
		"Impersonation": {
			reason: "nobody has fewer rights than others", method: http.MethodGet, path: "/api/v1/configmaps",
			user: "ann", want: "impersonation (Impersonate-User)",
		},
		"Health": {
			reason: "it has no state of health", method: http.MethodGet, path: "/readyz", want: "the path /readyz",
		},
		"OpenAPI": {
			reason: "schemas are published by group and version", method: http.MethodGet, path: "/openapi/v2",
			want: "the path /openapi/v2",
		},
		"Eviction": {
			reason: "pods have no node here", method: http.MethodPost,
			path: "/api/v1/namespaces/default/pods/a/eviction", body: `{}`, form: plain,
			want: "the subresource eviction of pods",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, "http://mem", asUser{inMemory(t), tc.user})
			p.accept = cmp.Or(tc.accept, plain)
			response := p.send(tc.method, p.host+tc.path, tc.form, tc.body)
			defer func() { _ = response.Body.Close() }()
			data, _ := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusNotImplemented || !strings.Contains(string(data), tc.want) {
				t.Errorf("%s: got %d, want %d with %q: %s", tc.reason, response.StatusCode,
					http.StatusNotImplemented, tc.want, data)
			}
		})
	}
}

// asUser says for whom requests are.
type asUser struct {
	*memapi.Server
	name string
}

// RoundTrip sends a request in the name of the user.
func (u asUser) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.name != "" {
		r.Header.Set("Impersonate-User", u.name)
	}
	return u.Server.RoundTrip(r)
}

// What is merely not there is not found, with a word on how to have it; so are foreign paths.
func TestNotInstalled(t *testing.T) {
	cases := map[string]struct{ reason, path, want string }{
		"FlowSchemas": {
			reason: "the real server has them, and an operator may need them",
			path:   "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
			want:   "does not serve flowschemas of flowcontrol.apiserver.k8s.io/v1: tell it to with Server.Install",
		},
		"Reviews": {
			reason: "permissions are not looked at", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			want: "does not serve selfsubjectaccessreviews of authorization.k8s.io/v1",
		},
		"Foreign": {
			reason: "nobody has them", path: "/apis/example.org/v1/ghosts",
			want: "could not find the requested resource",
		},
		"Subresource": {
			reason: "nor that", path: "/apis/memapi.example.org/v1/namespaces/default/gizmos/a/nothing",
			want: `gizmos.memapi.example.org \"a\" not found`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, "http://mem", inMemory(t))
			response := p.send(http.MethodGet, p.host+tc.path, "", "")
			defer func() { _ = response.Body.Close() }()
			data, _ := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusNotFound || !strings.Contains(string(data), tc.want) {
				t.Errorf("%s: got %d, want %q: %s", tc.reason, response.StatusCode, tc.want, data)
			}
		})
	}
}

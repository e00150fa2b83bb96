package memapi_test

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestUnsupportedRequests shows that memapi refuses, by name, features of the real server that it does not implement.
func TestUnsupportedRequests(t *testing.T) {
	cases := map[string]struct {
		reason, method, path, body, contentType string
		accept, user                            string
		want                                    string
	}{
		"Parameter": {
			reason: "an unsupported parameter of a list is refused", method: http.MethodGet,
			path: "/api/v1/configmaps?example=x", want: "the parameter example of a list",
		},
		"WrongVerb": {
			reason: "a parameter of another verb is refused", method: http.MethodGet,
			path: "/api/v1/namespaces/default/configmaps/a?fieldManager=x", want: "the parameter fieldManager of a get",
		},
		"Former": {
			reason: "a list of a former state is refused", method: http.MethodGet,
			path: "/api/v1/configmaps?resourceVersion=1&resourceVersionMatch=Exact",
			want: "lists of a former state (resourceVersionMatch=Exact)",
		},
		"Exec": {
			reason: "exec is refused, as pods do not run", method: http.MethodPost,
			path: "/api/v1/namespaces/default/pods/a/exec?command=date", want: "the subresource exec of pods",
		},
		"Log": {
			reason: "logs are refused, as pods do not run", method: http.MethodGet,
			path: "/api/v1/namespaces/default/pods/a/log?follow=true", want: "the subresource log of pods",
		},
		"Finalize": {
			reason: "the finalize subresource of namespaces is refused", method: http.MethodPut,
			path: "/api/v1/namespaces/a/finalize", body: `{}`, contentType: jsonContentType,
			want: "the subresource finalize of namespaces",
		},
		"Single": {
			reason: "a watch of a single object is refused", method: http.MethodGet,
			path: "/api/v1/namespaces/default/configmaps/a?watch=true", want: "the parameter watch of a get",
		},
		"Some": {
			reason: "the deletion of a part of a collection is refused", method: http.MethodDelete,
			path: "/api/v1/namespaces/default/configmaps?limit=1", want: "the parameter limit of a deletecollection",
		},
		"Table": {
			reason: "an answer in the form of a table is refused", method: http.MethodGet, path: "/api/v1/configmaps",
			accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
			want:   "answers in the form application/json;as=Table",
		},
		"Protobuf": {
			reason: "an answer as protobuf is refused", method: http.MethodGet, path: "/api/v1/configmaps",
			accept: "application/vnd.kubernetes.protobuf",
			want:   "answers in the form application/vnd.kubernetes.protobuf",
		},
		"ProtobufBody": {
			reason: "a protobuf body is refused", method: http.MethodPost,
			path: "/api/v1/namespaces/default/configmaps",
			body: "k8s", contentType: "application/vnd.kubernetes.protobuf",
			want: "bodies in the form application/vnd.kubernetes.protobuf",
		},
		"YAML": {
			reason: "a body as YAML is refused except for apply", method: http.MethodPost,
			path: "/api/v1/namespaces/default/configmaps", body: "kind: ConfigMap", contentType: "application/yaml",
			want: "bodies in the form application/yaml",
		},
		"Aggregated": {
			reason: "aggregated discovery is refused", method: http.MethodGet, path: "/apis",
			accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			want:   "answers in the form application/json;g=apidiscovery.k8s.io",
		},
		"Impersonation": {
			reason: "impersonation is refused", method: http.MethodGet, path: "/api/v1/configmaps",
			user: "ann", want: "impersonation (Impersonate-User)",
		},
		"Health": {
			reason: "health endpoints are refused", method: http.MethodGet, path: "/readyz", want: "the path /readyz",
		},
		"OpenAPI": {
			reason: "the OpenAPI document of version 2 is refused", method: http.MethodGet, path: "/openapi/v2",
			want: "the path /openapi/v2",
		},
		"Eviction": {
			reason: "the eviction of pods is refused", method: http.MethodPost,
			path: "/api/v1/namespaces/default/pods/a/eviction", body: `{}`, contentType: jsonContentType,
			want: "the subresource eviction of pods",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, "http://mem", impersonatingServer{inMemory(t), tc.user})
			p.accept = cmp.Or(tc.accept, jsonContentType)
			response := p.send(tc.method, p.host+tc.path, tc.contentType, tc.body)
			defer func() { _ = response.Body.Close() }()
			data, _ := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusNotImplemented || !strings.Contains(string(data), tc.want) {
				t.Errorf("%s: got %d, want %d with %q: %s", tc.reason, response.StatusCode,
					http.StatusNotImplemented, tc.want, data)
			}
		})
	}
}

// impersonatingServer sends requests in the name of a user.
type impersonatingServer struct {
	*memapi.Server
	userName string
}

// RoundTrip sets the header for impersonation, if a user is given.
func (u impersonatingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.userName != "" {
		r.Header.Set("Impersonate-User", u.userName)
	}
	return u.Server.RoundTrip(r)
}

// TestNotInstalled shows that kinds that are not installed are not found, with a hint, and that unknown paths are not
// found.
func TestNotInstalled(t *testing.T) {
	cases := map[string]struct{ reason, path, want string }{
		"FlowSchemas": {
			reason: "a kind of the real server is not found, with a hint to install it",
			path:   "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
			want:   "does not serve flowschemas of flowcontrol.apiserver.k8s.io/v1: install them with Server.Install",
		},
		"Reviews": {
			reason: "reviews of permissions are not found, with a hint",
			path:   "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			want:   "does not serve selfsubjectaccessreviews of authorization.k8s.io/v1",
		},
		"Foreign": {
			reason: "an unknown kind is not found", path: "/apis/example.org/v1/ghosts",
			want: "could not find the requested resource",
		},
		"Subresource": {
			reason: "an unknown subresource is not found",
			path:   "/apis/memapi.example.org/v1/namespaces/default/gizmos/a/nothing",
			want:   `gizmos.memapi.example.org \"a\" not found`,
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

package memapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

const scaleFormat = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q},"spec":{"replicas":%d}}`

// clusterStep is a request of a script about other kinds than those of [script].
type clusterStep struct{ method, path, contentType, body string }

// clusterScript returns the requests of kubectl for scales, namespaces and misspelt manifests.
func clusterScript() []clusterStep {
	const apps = "/apis/apps/v1/namespaces/default/deployments"
	const own = "/apis/memapi.example.org/v1/namespaces/default/widgets"
	begin := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"sc"},"spec":{"replicas":1,` + template +
		`}}`
	misspelt := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"m"},"spec":{"replicass":1,` +
		template + `}}`
	wrong := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"m"},"spec":{"replicas":"x",` +
		template + `}}`
	steps := []clusterStep{
		{"GET", apps + "/sc/scale", "", ""}, {"POST", apps, jsonContentType, begin},
		{"GET", apps + "/sc/scale", "", ""},
		{"PATCH", apps + "/sc/scale", mergePatchType, `{"spec":{"replicas":3}}`},
		{"PUT", apps + "/sc/scale", jsonContentType, fmt.Sprintf(scaleFormat, "sc", 2)},
		{"PUT", apps + "/sc/scale", jsonContentType, fmt.Sprintf(scaleFormat, "other", 2)},
		{"PUT", apps + "/sc/scale", jsonContentType, fmt.Sprintf(scaleFormat, "sc", -1)},
		{"PATCH", apps + "/sc/scale", mergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":4}}`},
		{"GET", apps + "/sc/scale", "", ""}, {"DELETE", apps + "/sc", "", ""},
		{"POST", own, jsonContentType, object(widgets, "sc", "", `"spec":{"replicas":2}`)},
		{"GET", own + "/sc/scale", "", ""}, {"PATCH", own + "/sc/scale", mergePatchType, `{"spec":{"replicas":3}}`},
		{"PUT", own + "/sc/scale", jsonContentType, fmt.Sprintf(scaleFormat, "sc", 4)}, {"DELETE", own + "/sc", "", ""},
		{"GET", "/apis/memapi.example.org/v1/namespaces/default/gadgets/sc/scale", "", ""},
		{"POST", apps + "?fieldValidation=Strict", jsonContentType, misspelt},
		{"POST", apps + "?fieldValidation=Strict", jsonContentType,
			wrong},
		{"POST", apps + "?fieldValidation=Warn&dryRun=All", jsonContentType, misspelt},
	}
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"%s}}`
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":` +
		`{"name":"shorts.memapi.example.org"},"spec":{"group":"memapi.example.org","scope":"Cluster",` +
		`"names":{"kind":"Short","plural":"shorts"},"versions":[{"name":"v1","served":true,"storage":true,` +
		`"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	return append(steps, []clusterStep{
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", jsonContentType, definition},
		{"PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shorts.memapi.example.org",
			"application/strategic-merge-patch+json", `{"metadata":{"annotations":{"e/a":"1"}}}`},
		{"POST", "/api/v1/namespaces/gone/configmaps", jsonContentType, fmt.Sprintf(config, "")},
		{"POST", "/api/v1/namespaces", jsonContentType,
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gone"}}`},
		{"POST", "/api/v1/namespaces/gone/configmaps", jsonContentType, fmt.Sprintf(config,
			`,"finalizers":["example.org/hold"]`)},
		{"DELETE", "/api/v1/namespaces/gone", "", ""}, {"DELETE", "/api/v1/namespaces/gone", "", ""},
		{"POST", "/api/v1/namespaces/gone/secrets", jsonContentType,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`},
		{"PATCH", "/api/v1/namespaces/gone", mergePatchType, `{"metadata":{"annotations":{"e/a":"1"}}}`},
		{"GET", "/api/v1/namespaces/gone", "", ""},
	}...)
}

// playCluster sends the script to both servers; the one in memory manages namespaces. The real one runs without
// controllers, so the effects of controllers are not compared here but in the test of the devcluster.
func playCluster(t *testing.T, genuine *player) {
	t.Helper()
	server := inMemory(t)
	server.ManageNamespaces(time.Hour)
	own := newPlayer(t, "http://mem", server)
	_ = own.step(clusterStep{
		"POST", "/api/v1/namespaces", jsonContentType,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`,
	})
	for i, step := range clusterScript() {
		if d := diff.Diff(genuine.step(step), own.step(step)); d != "" {
			t.Errorf("step %d: %s %s %s: -real, +memory:\n%s", i, step.method, step.path, step.body, d)
		}
	}
}

// step returns the code, the warnings, and the comparable part of the answer.
func (p *player) step(step clusterStep) normalizedResponse {
	p.t.Helper()
	response := p.send(step.method, p.host+step.path, step.contentType, step.body)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		Kind, Reason, Message string
		Status                any
		Spec                  map[string]any
		Details               struct {
			Causes []struct{ Reason, Field string }
		}
		Metadata struct {
			Name        string
			Generation  int64
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	if answer.Kind == "CustomResourceDefinition" {
		answer.Status = nil // the real server establishes it later
	}
	if answer.Kind == "Deployment" || step.method == http.MethodDelete && answer.Kind == "Status" {
		answer.Spec, answer.Status = nil, nil // the real server adds defaults; the details have a uid
	}
	return normalizedResponse{response.StatusCode, response.Header.Values("Warning"), answer}
}

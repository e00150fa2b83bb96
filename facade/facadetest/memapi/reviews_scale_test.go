package memapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestScalesAreReviewed shows that reviewers get a write of a scale as a Scale, and not as the whole object.
func TestScalesAreReviewed(t *testing.T) {
	server := memapi.New()
	var seen []string
	server.AddReviewer(func(
		_ context.Context, mutating bool, r *admissionv1.AdmissionRequest,
	) ([]byte, []string, error) {
		seen = append(seen, fmt.Sprintf("%t %s %s/%s", mutating, r.Operation, r.Resource.Resource, r.SubResource))
		var scale autoscalingv1.Scale
		if err := json.Unmarshal(r.Object.Raw, &scale); err != nil || r.SubResource == "" {
			return nil, nil, err
		}
		seen = append(seen, fmt.Sprintf("%s %s %d", r.Kind.Kind, scale.Kind, scale.Spec.Replicas))
		if !mutating {
			return nil, nil, nil
		}
		scale.Spec.Replicas = 5
		text, err := json.Marshal(scale)
		return text, nil, err
	}, func() bool { return true })
	send := func(method, path, body string) map[string]any {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://mem"+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", map[string]string{
			http.MethodPost: "application/json", http.MethodPatch: "application/merge-patch+json",
		}[method])
		response, err := server.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const all = "/apis/apps/v1/namespaces/default/deployments"
	send(http.MethodPost, all, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},`+
		`"spec":{"replicas":1}}`)
	scale := send(http.MethodPatch, all+"/a/scale", `{"spec":{"replicas":3}}`)
	want := []string{
		"true CREATE deployments/", "false CREATE deployments/", "true UPDATE deployments/scale", "Scale Scale 3",
		"false UPDATE deployments/scale", "Scale Scale 5",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("reviewed %q, want %q", seen, want)
	}
	if spec, _ := scale["spec"].(map[string]any); spec["replicas"] != float64(5) {
		t.Errorf("the answer must have the 5 replicas of the reviewer, got %v", scale)
	}
}

package memapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// nameForms are names that some kinds accept and others refuse.
var nameForms = []string{
	"web", "1web", "a.b", "a:b", "a_b", "A", "-a", "a-", ".", "..", "a%b", "a/b", "a b", "ä",
	strings.Repeat("a", 52), strings.Repeat("a", 53), strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("a", 253), strings.Repeat("a", 254),
}

// playNames creates objects of each built-in kind under names of each form, as dry runs.
func playNames(t *testing.T, genuine, own *player) {
	t.Helper()
	for _, r := range memapi.BuiltIn() {
		spec, ok := sampleOf(r)
		if !ok {
			continue // the name of a definition follows from its content
		}
		for _, name := range nameForms {
			for _, field := range []string{"name", "generateName"} {
				want, got := genuine.createNamed(r, spec[0], field, name), own.createNamed(r, spec[0], field, name)
				if d := diff.Diff(want, got); d != "" {
					t.Errorf("%s with %s %q: -real, +memory:\n%s", r.Kind, field, name, d)
				}
			}
		}
	}
}

// createNamed returns the code and the errors about the name.
func (p *player) createNamed(r memapi.Resource, spec, field, name string) []string {
	p.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%q:%q},%s}`,
		strings.TrimPrefix(r.Group+"/"+r.Version, "/"), r.Kind, field, name, spec)
	response := p.send(http.MethodPost, p.urlOf(r)+"?dryRun=All", jsonContentType, body)
	defer func() { _ = response.Body.Close() }()
	var status struct {
		Reason  string
		Details struct {
			Causes []struct{ Field, Reason, Message string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		p.t.Fatal(err)
	}
	told := []string{fmt.Sprintf("%d %s", response.StatusCode, status.Reason)}
	generated := regexp.MustCompile(regexp.QuoteMeta(`"`+name[:min(len(name), 58)]) + `[0-9a-z]{5}"`)
	for _, cause := range status.Details.Causes {
		if cause.Field == "metadata.labels" {
			continue // a default: the name of a namespace as a label
		}
		message := generated.ReplaceAllString(cause.Message, "<generated>")
		told = append(told, fmt.Sprintf("%s: %s: %s", cause.Field, cause.Reason, message))
	}
	return slices.Compact(told) // only the real server adds two labels with its name to a job
}

// playAgain applies the same object twice, one second apart: only the times in managedFields could differ. The URL does
// not accept the status of a Service.
func playAgain(t *testing.T, genuine, own *player) {
	t.Helper()
	for _, p := range []*player{genuine, own} {
		path := p.host + "/api/v1/namespaces/default/services/again?fieldManager=me&force=true"
		body := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"again"},` +
			`"spec":{"clusterIP":"None","ports":[{"port":80}]},"status":{"loadBalancer":{}}}`
		var versions []string
		for range 2 {
			response := p.send(http.MethodPatch, path, "application/apply-patch+yaml", body)
			var object struct {
				Metadata struct {
					ResourceVersion string `json:"resourceVersion"`
				}
			}
			err := json.NewDecoder(response.Body).Decode(&object)
			if _ = response.Body.Close(); err != nil || response.StatusCode >= http.StatusBadRequest {
				t.Fatalf("%s: an apply must succeed: %s, %v", p.host, response.Status, err)
			}
			versions = append(versions, object.Metadata.ResourceVersion)
			time.Sleep(1100 * time.Millisecond)
		}
		if versions[0] != versions[1] {
			t.Errorf("%s: an apply without a change must keep the version, got %q", p.host, versions)
		}
	}
}

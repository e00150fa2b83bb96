package weight_test

import (
	"slices"
	"strings"
	"testing"
)

const kits = modulePath + "/facade/facadetest"

var frameworks = []string{"testing", "net/http/httptest", "sigs.k8s.io/controller-runtime/pkg/envtest"}

// forTests are the packages of a program, with its tests or without, that exist for tests: the kit with all below it,
// and what test frameworks need.
func forTests(t *testing.T, listing ...string) (found []string) {
	t.Helper()
	for _, path := range run(t, "go", append([]string{"list", "-deps"}, listing...)...) {
		path, _, _ = strings.Cut(path, " ") // the suffix of packages built for a test
		kit := path == kits || strings.HasPrefix(path, kits+"/") || strings.HasPrefix(path, modulePath+"/test/")
		if kit || slices.Contains(frameworks, path) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Whatever a program imports, by whatever way, it gets nothing that exists for tests: neither by the facade, nor by
// modules of other people.
func TestNothingOfTheKitIsLinked(t *testing.T) {
	programs := run(t, "go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "../../examples/...")
	if found := forTests(t, programs...); len(found) > 0 {
		t.Errorf("programs link what exists for tests: %q", found)
	}
	if found := forTests(t, "-test", "../../examples/09-testing"); !slices.Contains(found, kits+"/memapi") {
		t.Errorf("the tests of an example use the kit, but %q was found: the check above passes for nothing", found)
	}
}

// Traces cost a program that does not trace the API of OpenTelemetry alone, without its global state.
func TestNoSDKOfTracesIsLinked(t *testing.T) {
	const api = "go.opentelemetry.io/otel/trace"
	deps := run(t, "go", "list", "-deps", "../../examples/...")
	if !slices.Contains(deps, api) {
		t.Errorf("no program links %s: the check below passes for nothing", api)
	}
	for _, path := range deps {
		if strings.HasPrefix(path, "go.opentelemetry.io/otel/sdk") || path == "go.opentelemetry.io/otel" {
			t.Errorf("a program links %s", path)
		}
	}
}

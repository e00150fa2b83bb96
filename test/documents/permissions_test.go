package documents_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// placeholders are the names that docs/permissions.md has for the kinds of recorded operators and of manifests.
var placeholders = map[documents.Permission]documents.Permission{
	{Group: "example.org", Resource: "widgets"}:           {Group: "<group>", Resource: "<kind>"},
	{Group: "kopf.dev", Resource: "kopfexamples"}:         {Group: "<group>", Resource: "<kind>"},
	{Group: "websites.example.org", Resource: "websites"}: {Group: "<group>", Resource: "<kind>"},
	{Group: "", Resource: "configmaps"}:                   {Group: "<child group>", Resource: "<child kind>"},
}

// permissionsIn returns the permissions in a trace or a manifest, as docs/permissions.md names them.
func permissionsIn(t *testing.T, file string) map[documents.Permission]bool {
	t.Helper()
	text := read(t, file)
	all, err := documents.Requests(text), error(nil)
	if path.Ext(file) == ".yaml" {
		all, err = documents.Rules(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	found := map[documents.Permission]bool{}
	for _, one := range all {
		resource, subresource, _ := strings.Cut(one.Resource, "/")
		if named, ok := placeholders[documents.Permission{Group: one.Group, Resource: resource}]; ok {
			one.Group, one.Resource = named.Group, strings.TrimSuffix(named.Resource+"/"+subresource, "/")
		}
		found[one] = true
	}
	return found
}

// TestPermissions compares the table in docs/permissions.md with the requests of recorded operators and with the roles
// in the manifests: each permission of a row is in the files of the row, and each request and rule has a row.
func TestPermissions(t *testing.T) {
	rows := documents.PermissionRows(read(t, "docs/permissions.md"))
	if len(rows) < 15 {
		t.Fatalf("found %d rows: the comparison would pass for nothing", len(rows))
	}
	documented := map[documents.Permission]bool{}
	for _, row := range rows {
		shown := map[documents.Permission]bool{}
		for _, file := range row.Files {
			if ext := path.Ext(file); ext == ".golden" || ext == ".yaml" {
				for one := range permissionsIn(t, path.Join("docs", file)) {
					shown[one] = true
				}
			}
		}
		if len(row.Permissions) == 0 {
			t.Errorf("docs/permissions.md, %s: the row has no permission", row.Feature)
		}
		for _, one := range row.Permissions {
			documented[one] = true
			if !shown[one] {
				t.Errorf("docs/permissions.md, %s: %s is in none of %v", row.Feature, one, row.Files)
			}
		}
	}
	checked := 0
	for _, pattern := range []string{
		"test/traces/testdata/*.golden", "config/rbac/*.yaml", "config/webhook/role.yaml",
		"examples/getting-started/deploy/rbac.yaml",
	} {
		files, err := filepath.Glob(path.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("found no files %s: %v", pattern, err)
		}
		for _, file := range files {
			name := strings.TrimPrefix(filepath.ToSlash(file), root+"/")
			for one := range permissionsIn(t, name) {
				checked++
				if !documented[one] {
					t.Errorf("docs/permissions.md does not have %s, which is in %s", one, name)
				}
			}
		}
	}
	if checked < 200 {
		t.Errorf("found %d permissions in files: the comparison would pass for nothing", checked)
	}
}

func TestRequestsInTraces(t *testing.T) {
	const trace = "+0.000s  GET /apis/example.org/v1 → 200\n" + // discovery
		"+0.000s  user POST /api/v1/namespaces → 201\n" + // of a user
		"+0.010s  GET /api/v1/namespaces?watch=true&sendInitialEvents=true&timeout=<by chance> → 200\n" +
		"+0.020s  GET /api/v1/namespaces/team-a → 200\n" +
		"+1.020s  PATCH /apis/example.org/v1/namespaces/a/widgets/one/status?fieldManager=x → 409\n" +
		"+1.020s  GET /apis/example.org/v1/widgets?limit=1 → 200\n"
	want := []documents.Permission{
		{Group: "", Resource: "namespaces", Verb: "list"}, {Group: "", Resource: "namespaces", Verb: "watch"},
		{Group: "", Resource: "namespaces", Verb: "get"},
		{Group: "example.org", Resource: "widgets/status", Verb: "patch"},
		{Group: "example.org", Resource: "widgets", Verb: "list"},
	}
	if d := cmp.Diff(want, documents.Requests(trace)); d != "" {
		t.Errorf("the permissions of each request (-want, +got):\n%s", d)
	}
}

func TestRulesOfManifests(t *testing.T) {
	const manifest = "kind: Role\nrules:\n- {apiGroups: [\"\", a], resources: [b], verbs: [get]}\n---\nkind: Binding\n"
	got, err := documents.Rules(manifest)
	want := []documents.Permission{{Resource: "b", Verb: "get"}, {Group: "a", Resource: "b", Verb: "get"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v; a rule is for each of its groups and resources (-want, +got):\n%s", err, d)
	}
	if _, err := documents.Rules("rules: 1"); err == nil {
		t.Error("a manifest that is not a role is an error")
	}
	document := "| Feature | API group | Resources | Verbs | By |\n|--|--|--|--|--|\n" +
		"| x | `\"\"` | `a`, `b` | `get` | [c](d.yaml) |\n"
	rows := []documents.PermissionRow{{Feature: "x", Permissions: []documents.Permission{
		{Resource: "a", Verb: "get"}, {Resource: "b", Verb: "get"},
	}, Files: []string{"d.yaml"}}}
	if d := cmp.Diff(rows, documents.PermissionRows(document)); d != "" {
		t.Errorf("the row of a table (-want, +got):\n%s", d)
	}
}

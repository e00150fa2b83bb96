package documents

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Permission is one verb on one resource, with its subresource.
type Permission struct{ Group, Resource, Verb string }

// String returns the permission as messages name it.
func (p Permission) String() string {
	return fmt.Sprintf("%s on %s in the group %q", p.Verb, p.Resource, p.Group)
}

// request is a line of a trace: a request that an operator sent. Those of users begin with the word user.
var request = regexp.MustCompile(`(?m)^[+-][\d.]+s  (GET|POST|PUT|PATCH|DELETE) (.*) → \d+`)

// verbs are the verbs of RBAC by the methods of requests, except GET.
var verbs = map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

// Requests returns the permissions that the requests of the operator in a trace need. Discovery is left out. A watch
// that begins with the existing objects counts as a list, too: the operator lists them if the API server cannot send
// them with the watch.
func Requests(trace string) (needed []Permission) {
	for _, found := range request.FindAllStringSubmatch(trace, -1) {
		path, query, _ := strings.Cut(found[2], "?")
		p, named, ok := permissionOf(path)
		if !ok {
			continue
		}
		options, _ := url.ParseQuery(query)
		switch {
		case found[1] != "GET":
			p.Verb = verbs[found[1]]
		case named:
			p.Verb = "get"
		case options.Get("watch") == "true":
			p.Verb = "watch"
			if options.Get("sendInitialEvents") == "true" {
				needed = append(needed, Permission{p.Group, p.Resource, "list"})
			}
		default:
			p.Verb = "list"
		}
		needed = append(needed, p)
	}
	return needed
}

// permissionOf reads the path of a request. It is not ok for discovery.
func permissionOf(path string) (p Permission, named, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		p.Group, parts = parts[1], parts[3:]
	default:
		return p, false, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	p.Resource = parts[0]
	if len(parts) > 2 {
		p.Resource += "/" + parts[2]
	}
	return p, len(parts) > 1, true
}

// Rules returns the permissions of the roles in a manifest.
func Rules(manifest string) (granted []Permission, err error) {
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			granted = append(granted, product(rule.APIGroups, rule.Resources, rule.Verbs)...)
		}
	}
	return granted, nil
}

func product(groups, resources, verbs []string) (all []Permission) {
	for _, group := range groups {
		for _, resource := range resources {
			for _, verb := range verbs {
				all = append(all, Permission{group, resource, verb})
			}
		}
	}
	return all
}

// PermissionRow is a row of the table of permissions.
type PermissionRow struct {
	Feature     string
	Permissions []Permission
	// Files are the traces and manifests that the row links to, from the folder of the document.
	Files []string
}

// PermissionRows returns the rows of the table with the head "| Feature | API group | Resources | Verbs |".
func PermissionRows(document string) (rows []PermissionRow) {
	for _, grid := range Grids(document) {
		if len(grid.Head) < 4 || grid.Head[0] != "Feature" || grid.Head[1] != "API group" {
			continue
		}
		for _, row := range grid.Rows {
			groups := Spans(row[1])
			for i, group := range groups {
				groups[i] = strings.Trim(group, `"`)
			}
			rows = append(rows, PermissionRow{
				Feature: row[0], Permissions: product(groups, Spans(row[2]), Spans(row[3])),
				Files: Links(row[len(row)-1]),
			})
		}
	}
	return rows
}

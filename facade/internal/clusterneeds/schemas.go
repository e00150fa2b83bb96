package clusterneeds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// schemaCheck compares what the operator writes to objects of one kind with the schema of the kind.
type schemaCheck struct {
	operator CheckInput
	resource discovery.Resource
	all      []*handlers.Handler // of the kind, that write
	schema   map[string]any
	resolve  func(reference string) map[string]any
}

// checkSchemas checks the kinds of CRDs. The API server never drops annotations, so that most operators need no field.
func (o CheckInput) checkSchemas(
	ctx context.Context, server *Server, served []discovery.Resource,
) (findings []Finding) {
	for _, one := range o.writtenKinds(served) {
		schema, resolve, err := discovery.SchemaOf(ctx, server, one.resource.GroupVersionKind)
		if err != nil {
			findings = append(findings, Finding{
				Status: Unknown, Check: "schema", Subject: nameOf(one.resource), Handlers: handlerIDs(one.all),
				Problem: err.Error(),
				Fix:     "permit the user to read /openapi/v3, as the ClusterRole system:discovery does",
			})
			continue
		}
		one.operator, one.schema, one.resolve = o, schema, resolve
		findings = slices.Concat(findings, one.checkStored(), one.checkConditions(), one.checkResults())
	}
	return findings
}

// writtenKinds returns the kinds of CRDs whose handlers write, each once.
func (o CheckInput) writtenKinds(served []discovery.Resource) (all []schemaCheck) {
	for _, one := range o.Handlers {
		if registry.OnlyWatchesChildren(one.Handler) || registry.IsAdmissionHandler(one.Handler) ||
			!one.Handler.WritesObjects() || one.Handler.Index != nil {
			continue
		}
		for _, r := range one.Selector.SelectFrom(served) {
			i := slices.IndexFunc(all, func(c schemaCheck) bool { return c.resource.String() == r.String() })
			switch {
			case r.IsBuiltIn():
			case i >= 0:
				all[i].all = append(all[i].all, one.Handler)
			default:
				all = append(all, schemaCheck{resource: r, all: []*handlers.Handler{one.Handler}})
			}
		}
	}
	return all
}

// checkStored checks the fields in which the operator stores its memory.
func (c schemaCheck) checkStored() (findings []Finding) {
	type stored struct {
		what   string
		places []string
		by     []*handlers.Handler
	}
	all := []stored{{"the last-handled configuration", c.operator.Essence, c.all}}
	for _, h := range c.all {
		if h.StoresUnderID() && c.operator.Record != nil {
			all = append(all, stored{"the record of a handler", c.operator.Record(h.ID), []*handlers.Handler{h}})
		}
	}
	for _, one := range all {
		// The API server keeps all annotations. Storages that write to several places read all of them.
		isAnnotation := func(place string) bool { return strings.HasPrefix(place, "/metadata/") }
		if len(one.places) == 0 || slices.ContainsFunc(one.places, isAnnotation) {
			continue
		}
		finding := Finding{
			Status: OK, Check: "stored field", Subject: nameOf(c.resource) + " " + one.what,
			Handlers: handlerIDs(one.by),
		}
		if dropped := c.droppedField(one.places); dropped != "" {
			finding.Status = Failed
			finding.Problem = "the API server drops " + dropped + ", so that handlers are called again"
			finding.Fix = fmt.Sprintf("add %s to the schema of version %s in the CRD %s, with "+
				"x-kubernetes-preserve-unknown-fields: true", dropped, c.resource.Version, c.resource.GroupResource())
		}
		findings = append(findings, finding)
	}
	return findings
}

// droppedField returns the first field of these JSON pointers that the schema does not keep, or an empty text.
func (c schemaCheck) droppedField(places []string) string {
	for _, place := range places {
		path := strings.Split(strings.TrimPrefix(place, "/"), "/")
		for i := range path {
			path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
			if !c.keeps(path[:i+1]...) {
				return strings.Join(path[:i+1], ".")
			}
		}
	}
	return ""
}

// keeps reports whether the API server keeps the field. It does if there is no schema.
func (c schemaCheck) keeps(path ...string) bool {
	return conditions.KeepsField(c.schema, path, c.resolve)
}

// checkConditions checks what the conditions of handlers need.
func (c schemaCheck) checkConditions() []Finding {
	if !slices.ContainsFunc(c.all, registry.ReportsConditions) {
		return nil
	}
	finding := Finding{
		Status: OK, Check: "conditions", Subject: nameOf(c.resource), Feature: "Conditions",
		Handlers: handlerIDs(c.all),
	}
	misfit := ""
	if c.schema != nil {
		misfit, _ = conditions.SchemaMisfit(c.schema, c.resolve)
	}
	switch {
	case !c.resource.HasStatus():
		finding.Status, finding.Problem = Failed, "the status is not a subresource: no conditions are written"
		finding.Fix = c.subresourceFix()
	case misfit != "":
		finding.Status, finding.Problem = Failed, misfit+": no conditions are written"
		finding.Fix = fmt.Sprintf("add status.conditions, a list of metav1.Condition, to version %s of the CRD %s",
			c.resource.Version, c.resource.GroupResource())
	}
	return []Finding{finding}
}

// subresourceFix returns the fix for a kind without the status subresource.
func (c schemaCheck) subresourceFix() string {
	return fmt.Sprintf("add \"subresources: {status: {}}\" to version %s of the CRD %s", c.resource.Version,
		c.resource.GroupResource())
}

// checkResults checks whether the status can have the results of handlers. Whether they set any is not known.
func (c schemaCheck) checkResults() []Finding {
	finding := Finding{Status: OK, Check: "status", Subject: nameOf(c.resource), Feature: "SetResult and Patch"}
	var dropped []string
	for _, h := range c.all {
		if h.StoresUnderID() && h.Call != nil && !c.keeps("status", h.ID) && !slices.Contains(dropped, h.ID) {
			dropped = append(dropped, h.ID)
		}
	}
	finding.Handlers = handlerIDs(c.all)
	switch {
	case !c.resource.HasStatus():
		finding.Status, finding.Fix = Unknown, c.subresourceFix()
		finding.Problem = "the status is not a subresource: Condition fails, and each write of the status is a new " +
			"generation; whether the handlers write it is not known"
	case len(dropped) > 0:
		finding.Status, finding.Handlers = Unknown, dropped
		finding.Problem = "the API server drops results of these handlers; whether they call SetResult is not known"
		finding.Fix = fmt.Sprintf("if they do, add status.%s to version %s of the CRD %s", dropped[0],
			c.resource.Version, c.resource.GroupResource())
	}
	return []Finding{finding}
}

// nameOf returns the name of a resource as in the name of its CRD, with its version.
func nameOf(r discovery.Resource) string {
	return r.GroupResource().String() + "/" + cmp.Or(r.Version, "?")
}

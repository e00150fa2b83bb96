package devcluster

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// renderTable converts an object or a list to the rows that kubectl prints. The columns are described only if headers
// is set: in a watch, that is the first event.
func (h *handler) renderTable(data []byte, form responseFormat, of memapi.Resource, headers bool) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	made, err := h.tableRows(object, of)
	if err != nil {
		return nil, err
	}
	made.TypeMeta = metav1.TypeMeta{APIVersion: metav1.GroupName + "/" + form.tableVersion, Kind: "Table"}
	if !headers {
		made.ColumnDefinitions = nil
	}
	for i := range made.Rows {
		row := &made.Rows[i]
		content, ok := row.Object.Object.(*unstructured.Unstructured)
		switch {
		// By default, a row contains the metadata of its object.
		case !ok || form.includeObject == string(metav1.IncludeNone):
			row.Object = runtime.RawExtension{}
		case form.includeObject != string(metav1.IncludeObject):
			row.Object.Object = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": metav1.GroupName + "/" + form.tableVersion, "kind": "PartialObjectMetadata",
				"metadata": content.Object["metadata"],
			}}
		}
	}
	return json.Marshal(made)
}

// tableRows returns the table of an object or a list with complete objects.
func (h *handler) tableRows(object *unstructured.Unstructured, of memapi.Resource) (*metav1.Table, error) {
	var content runtime.Object = object
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return nil, err
		}
		content = list
	}
	// Built-in kinds do not declare their columns, so these are in a table of this package.
	if columns, ok := builtInColumns[of.Group+"/"+of.Kind]; ok {
		return builtInRows(content, columns)
	}
	convertor, err := tableconvertor.New(h.printerColumns(of))
	if err != nil {
		return nil, fmt.Errorf("the columns of %s: %w", of.Plural, err)
	}
	return convertor.ConvertToTable(context.Background(), content, nil)
}

// ageColumn is the column of custom resources whose definition does not declare columns.
var ageColumn = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
}

// printerColumns returns the columns of a custom resource in one version, or nil for built-in kinds.
func (h *handler) printerColumns(of memapi.Resource) []apiextensionsv1.CustomResourceColumnDefinition {
	crd := h.definitionOf(of)
	if crd == nil {
		return nil
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == of.Version && len(v.AdditionalPrinterColumns) > 0 {
			return v.AdditionalPrinterColumns
		}
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{ageColumn}
}

// definitionOf returns the custom resource definition of a resource, or nil for built-in kinds.
func (h *handler) definitionOf(of memapi.Resource) *apiextensionsv1.CustomResourceDefinition {
	object := h.memory.Object(definitionsResource, "", of.Plural+"."+of.Group)
	if object == nil {
		return nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	// A stored definition that cannot be decoded is treated like a missing one.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, crd); err != nil {
		return nil
	}
	return crd
}

// builtInRows returns the table of a built-in kind: the name, followed by the columns of the kind.
func builtInRows(content runtime.Object, columns []column) (*metav1.Table, error) {
	made := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	}}
	for _, c := range columns {
		made.ColumnDefinitions = append(made.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: c.name, Type: "string", Priority: c.priority,
		})
	}
	// Paginated lists need their metadata, or kubectl would not read the next page.
	if list, ok := content.(*unstructured.UnstructuredList); ok {
		made.ListMeta = metav1.ListMeta{
			ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(),
			RemainingItemCount: list.GetRemainingItemCount(),
		}
	} else if one, ok := content.(*unstructured.Unstructured); ok {
		made.ListMeta = metav1.ListMeta{ResourceVersion: one.GetResourceVersion()}
	}
	var err error
	made.Rows, err = metatable.MetaToTableRow(
		content, func(object runtime.Object, m metav1.Object, name, age string) ([]any, error) {
			one, ok := object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("%T cannot be printed", object)
			}
			cells := []any{name}
			for _, c := range columns {
				cells = append(cells, c.cell(one.Object, age))
			}
			return cells, nil
		},
	)
	return made, err
}

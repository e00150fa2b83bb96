package documents

import (
	"fmt"
	"slices"
	"strings"
)

// KopfName is one name of Kopf in a table, with its Go form.
type KopfName struct {
	// Key is kopf.adopt, kopf.adopt(owner=), kopf.Reason.CREATE, or create(body) for an argument of handlers.
	Key string
	// Go is the cell with the Go form, or with the reason why Go does not have one.
	Go string
	// Activity is true for arguments of startup, cleanup, login and probe handlers.
	Activity bool
}

// absentCell is the cell of an argument that a kind of handlers does not get.
const absentCell = "–"

// activities are the handlers that do not get an object.
var activities = []string{"cleanup", "login", "probe", "startup"}

// KopfNames returns the names in the tables of a document. The head of a table defines its content:
//
//	| Kopf | Go |                  names
//	| Parameter | Decorators | Go | parameters of decorators; "all" are those of the list
//	| Parameter | Functions | Go |  parameters of kopf.operator and its kind
//	| Parameter | Of | Go |         parameters of others
//	| Kopf | `create` | `event` | … arguments of handlers, with a column for each group of handlers
func KopfNames(document string, decorators []string) (all []KopfName, err error) {
	for _, grid := range Grids(document) {
		for _, row := range grid.Rows {
			if len(row) != len(grid.Head) {
				return nil, fmt.Errorf("%s: a row has %d cells: %v", grid.Section, len(row), row)
			}
			names := Spans(row[0])
			if len(names) == 0 {
				return nil, fmt.Errorf("%s: a row has no name: %v", grid.Section, row)
			}
			for _, name := range names {
				all = append(all, namesIn(grid.Head, row, name, decorators)...)
			}
		}
	}
	return all, nil
}

func namesIn(head, row []string, name string, decorators []string) (all []KopfName) {
	switch {
	case len(head) == 2:
		return []KopfName{{Key: strings.TrimPrefix(name, "@"), Go: row[1]}}
	case head[0] == "Parameter":
		for _, of := range ownersIn(head[1], row[1], decorators) {
			all = append(all, KopfName{Key: of + "(" + name + ")", Go: row[2]})
		}
		return all
	}
	for i, column := range head[1:] {
		for _, handler := range Spans(column) {
			if cell := row[i+1]; cell != absentCell {
				key := handler + "(" + name + ")"
				all = append(all, KopfName{Key: key, Go: cell, Activity: slices.Contains(activities, handler)})
			}
		}
	}
	return all
}

// ownersIn returns the functions that a cell means: a list, all, or all except a list.
func ownersIn(head, cell string, decorators []string) (owners []string) {
	listed, family, prefix := Spans(cell), []string{"kopf.operator", "kopf.run", "kopf.spawn_tasks"}, ""
	if head == "Decorators" {
		family, prefix = decorators, "kopf.on."
	}
	if strings.HasPrefix(cell, "all") {
		except := listed
		listed = slices.DeleteFunc(slices.Clone(family), func(one string) bool { return slices.Contains(except, one) })
	}
	for _, one := range listed {
		owners = append(owners, prefix+one)
	}
	return owners
}

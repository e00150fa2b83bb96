package documents

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Deviation is one line of the tables of deviations.
type Deviation struct {
	// Mark is the first cell: tests and recorded cases name it.
	Mark string
	// State is the last cell: "in force", or "with" the feature that it waits for.
	State string
}

// InForce says that it is so today, which a test has to show.
func (d Deviation) InForce() bool { return d.State == "in force" }

// mark is how a deviation is called wherever it is named.
var mark = regexp.MustCompile(`\b[DK]-[a-z]+(-[a-z]+)*\b`)

// Deviations reads all tables of a document. It is an error if a line has no mark of its own, or no state.
func Deviations(document string) ([]Deviation, error) {
	var all []Deviation
	known := map[string]bool{}
	for _, grid := range Grids(document) {
		for _, row := range grid.Rows {
			one := Deviation{Mark: row[0], State: row[len(row)-1]}
			switch {
			case mark.FindString(one.Mark) != one.Mark || one.Mark == "":
				return nil, fmt.Errorf("%q is not a mark: each line begins with one, such as D-types", one.Mark)
			case known[one.Mark]:
				return nil, fmt.Errorf("%s stands in two lines", one.Mark)
			case !one.InForce() && !strings.HasPrefix(one.State, "with "):
				return nil, fmt.Errorf("%s: %q is not a state: it must be in force, or with a feature", one.Mark,
					one.State)
			}
			known[one.Mark] = true
			all = append(all, one)
		}
	}
	return all, nil
}

// Marks are the files that name each mark of a deviation.
type Marks struct {
	// ByTests are the tests that name a mark, and the recorded cases that have a result of their own here.
	ByTests map[string][]string
	// BySources are all sources that do.
	BySources map[string][]string
}

// FindMarks reads the Go sources and the recorded cases of some directories.
func FindMarks(sources fs.FS, directories ...string) (Marks, error) {
	found := Marks{ByTests: map[string][]string{}, BySources: map[string][]string{}}
	for _, directory := range directories {
		if err := fs.WalkDir(sources, directory, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return found.read(sources, name)
		}); err != nil {
			return Marks{}, fmt.Errorf("looking for marks in %s: %w", directory, err)
		}
	}
	return found, nil
}

// read takes up the marks of one file.
func (m Marks) read(sources fs.FS, name string) error {
	recorded := path.Ext(name) == ".json" && strings.Contains(name, "/testdata/vectors/")
	if path.Ext(name) != ".go" && !recorded {
		return nil
	}
	text, err := fs.ReadFile(sources, name)
	if err != nil {
		return err
	}
	for _, found := range mark.FindAllString(string(text), -1) {
		m.BySources[found] = append(m.BySources[found], name)
		if strings.HasSuffix(name, "_test.go") {
			m.ByTests[found] = append(m.ByTests[found], name)
		}
	}
	if !recorded {
		return nil
	}
	var family struct {
		Cases []struct {
			Deviation []string        `json:"deviation"`
			Here      json.RawMessage `json:"expected_here"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(text, &family); err != nil {
		return fmt.Errorf("reading the recorded cases of %s: %w", name, err)
	}
	for _, one := range family.Cases {
		for _, found := range one.Deviation {
			if one.Here != nil {
				m.ByTests[found] = append(m.ByTests[found], name)
			}
		}
	}
	return nil
}

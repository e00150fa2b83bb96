package vectors

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/json"
)

// Case is one case of a family.
type Case[Input any] struct {
	Name  string
	Input Input
	// Want is the expected output: the result with all deviations if there is one, otherwise that of genuine Kopf.
	Want Expected
	// Deviations are the marks of the decided deviations from Kopf.
	Deviations []string
	// LoadError explains why the case cannot be played: it has unused fields or lacks required ones. It fails only this
	// case.
	LoadError    error
	hasOwnResult bool
}

// Skipped reports whether the case deviates without a recorded result, so that the expected output is unknown.
func (c Case[Input]) Skipped() bool { return len(c.Deviations) > 0 && !c.hasOwnResult }

// raw is a JSON value that is not decoded yet; nil if it is absent.
type raw []byte

// UnmarshalJSON keeps a null, too: it is a result like any other.
func (r *raw) UnmarshalJSON(data []byte) error {
	*r = append(raw{}, data...)
	return nil
}

// MarshalJSON returns the value unchanged.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// document is a file without its comments.
type document struct {
	Family  string         `json:"family"`
	Context map[string]raw `json:"context"`
	Cases   []raw          `json:"cases"`
}

type rawCase struct {
	Name         string   `json:"name"`
	Standing     string   `json:"standing"`
	Deviation    []string `json:"deviation"`
	Input        raw      `json:"input"`
	Expected     raw      `json:"expected"`
	ExpectedHere raw      `json:"expected_here"`
}

// Read decodes the cases of the file <family>.json, with integers as int64 and
// other numbers as float64 wherever a type leaves the choice. It fails on a file
// of another family, and on one with no cases. A key that is unknown to the cases
// or to a struct Input is a problem of its case. What the context of the file
// says is in every input that does not say otherwise.
func Read[Input any](path string) ([]Case[Input], error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the vectors: %w", err)
	}
	var file document
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		return nil, fmt.Errorf("decoding the vectors %s: %w", path, err)
	}
	family := strings.TrimSuffix(filepath.Base(path), ".json")
	if file.Family != family || len(file.Cases) == 0 {
		return nil, fmt.Errorf("these are not the vectors of %q: %q, %d cases", family, file.Family, len(file.Cases))
	}
	cases := make([]Case[Input], 0, len(file.Cases))
	for _, given := range file.Cases {
		cases = append(cases, caseOf[Input](given, file.Context))
	}
	return cases, nil
}

func caseOf[Input any](data raw, context map[string]raw) Case[Input] {
	var given rawCase
	problem := decode(data, &given)
	c := Case[Input]{Name: given.Name, Deviations: given.Deviation, hasOwnResult: given.ExpectedHere != nil}
	want := given.Expected
	if c.hasOwnResult {
		want = given.ExpectedHere
	}
	if given.Input == nil || want == nil {
		c.LoadError = errors.Join(problem, errors.New("an input and an expected result are needed"))
		return c
	}
	input, err := withContext(given.Input, context)
	c.LoadError = errors.Join(problem, err, decode(input, &c.Input), decode(want, &c.Want.Value))
	return c
}

// withContext is the input with all of the context that it does not override.
func withContext(input raw, context map[string]raw) (raw, error) {
	if len(context) == 0 {
		return input, nil
	}
	whole := maps.Clone(context)
	if err := decode(input, &whole); err != nil {
		return nil, err
	}
	return stdjson.Marshal(whole)
}

// decode is strict: a field that the target does not have is an error.
func decode(data []byte, into any) error {
	lax, err := json.UnmarshalStrict(data, into)
	return errors.Join(append(lax, err)...)
}

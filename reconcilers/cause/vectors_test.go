package cause_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

type vectorFile struct {
	Family   string `json:"family"`
	Source   string `json:"source"`
	Standing string `json:"standing"`
	About    string `json:"about"`
	Compare  string `json:"compare"`
	Cases    []struct {
		Name      string   `json:"name"`
		Standing  string   `json:"standing"`
		Deviation []string `json:"deviation"`
		Input     struct {
			Event struct {
				Type   *string        `json:"type"`
				Object map[string]any `json:"object"`
			} `json:"event"`
			Old       map[string]any `json:"old"`
			New       map[string]any `json:"new"`
			Initial   bool           `json:"initial"`
			Finalizer string         `json:"finalizer"`
		} `json:"input"`
		Expected     *vectorResult `json:"expected"`
		ExpectedHere *vectorResult `json:"expected_here"`
	} `json:"cases"`
}

type vectorResult struct {
	Reason  string `json:"reason"`
	Initial bool   `json:"initial"`
	Deleted bool   `json:"deleted"`
}

func TestVectorsCause(t *testing.T) {
	raw, err := os.ReadFile("testdata/vectors/cause.json")
	if err != nil {
		t.Fatal(err)
	}
	var file vectorFile
	if unknown, err := json.UnmarshalStrict(raw, &file); err != nil || len(unknown) > 0 {
		t.Fatalf("decoding the vectors: %v; keys that the harness does not know: %v", err, unknown)
	}
	if file.Family != "cause" || len(file.Cases) == 0 {
		t.Fatalf("these are not the vectors of causes: %q, %d cases", file.Family, len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			want := c.Expected
			if c.ExpectedHere != nil {
				want = c.ExpectedHere
			} else if len(c.Deviation) > 0 {
				t.Skipf("deviation %v", c.Deviation)
			}
			finalizer := c.Input.Finalizer
			if finalizer == "" {
				finalizer = "kopf.zalando.org/KopfFinalizerMarker"
			}
			got := cause.Detect(cause.Observation{
				Body: c.Input.Event.Object, Gone: c.Input.Event.Type != nil && *c.Input.Event.Type == "DELETED",
				Finalizer: finalizer, Old: c.Input.Old, New: c.Input.New, Initial: c.Input.Initial,
			})
			result := &vectorResult{Reason: string(got.Reason), Initial: got.Initial, Deleted: got.Deleting}
			if d := cmp.Diff(want, result); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	}
}

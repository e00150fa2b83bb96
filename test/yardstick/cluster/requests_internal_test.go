package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequests(t *testing.T) {
	r := Requests{
		"patch kopfexamples": 40, "create events": 1, "get": 3, "list kopfexamples": 1, "patch kopfexamples/status": 2,
	}
	if got := r.Writes(); got != 43 {
		t.Errorf("reading is no writing, subresources are written as well: want 43, got %d", got)
	}
	if got := r.Total(); got != 47 {
		t.Errorf("all are 47, got %d", got)
	}
	want := "create events 1, get 0.15 per object, list kopfexamples 1, patch kopfexamples 2.00 per object, " +
		"patch kopfexamples/status 0.10 per object"
	if diff := cmp.Diff(want, r.Describe(20)); diff != "" {
		t.Errorf("what comes with each object is told per object, the rest as it is: -want, +got\n%s", diff)
	}
}

// TestAuditLog is about reading while the API server writes: a line that is there in part is read when it is whole.
func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := &auditLog{path: path}
	if _, err := log.more(); err == nil {
		t.Error("a log that is not there tells nothing, which is no number of requests")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	add := func(text string) []string {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		events, err := log.more()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			got = append(got, e.User.Username+" "+e.what())
		}
		return got
	}
	first := `{"verb":"patch","user":{"username":"ours"},"objectRef":{"resource":"pods","subresource":"status"}}` + "\n"
	if diff := cmp.Diff([]string{"ours patch pods/status"}, add(first+first[:20])); diff != "" {
		t.Errorf("the first is whole: -want, +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ours patch pods/status"}, add(first[20:])); diff != "" {
		t.Errorf("the second has become whole: -want, +got\n%s", diff)
	}
	if got := add(""); len(got) > 0 {
		t.Errorf("nothing is read twice, got %v", got)
	}
	if _, err := file.WriteString("no JSON\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.more(); err == nil {
		t.Error("a line that cannot be read may be a request: it is an error")
	}
}

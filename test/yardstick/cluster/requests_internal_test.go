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
		"create selfsubjectrulesreviews": 1,
	}
	if got := r.Writes(); got != 43 {
		t.Errorf("writes include subresources, and exclude reads and reviews: want 43, got %d", got)
	}
	if got := r.Total(); got != 48 {
		t.Errorf("the total includes all requests: want 48, got %d", got)
	}
	want := "create events 1, create selfsubjectrulesreviews 1, get 0.15 per object, " +
		"list kopfexamples 1, patch kopfexamples 2.00 per object, " +
		"patch kopfexamples/status 0.10 per object"
	if diff := cmp.Diff(want, r.Describe(20)); diff != "" {
		t.Errorf("frequent requests are counted per object, the others in total: -want, +got\n%s", diff)
	}
}

// TestAuditLog shows that the log can be read while the API server writes: a partial line is read once it is complete.
func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := &auditLog{path: path}
	if _, err := log.newEvents(); err == nil {
		t.Error("a missing log is an error and does not count as zero requests")
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
		events, err := log.newEvents()
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
		t.Errorf("a complete line is read: -want, +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ours patch pods/status"}, add(first[20:])); diff != "" {
		t.Errorf("a completed line is read: -want, +got\n%s", diff)
	}
	if got := add(""); len(got) > 0 {
		t.Errorf("no line is read twice, got %v", got)
	}
	if _, err := file.WriteString("no JSON\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.newEvents(); err == nil {
		t.Error("a malformed line is an error because it can be a request")
	}
}

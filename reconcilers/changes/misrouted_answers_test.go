package changes_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// misroutedConnection is a connection that returns answers about another object to writes while it is broken.
type misroutedConnection struct {
	*link
	broken bool
}

func (m *misroutedConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.link.RoundTrip(r)
	if err != nil || !m.broken || r.Method != http.MethodPatch || response.StatusCode != http.StatusOK {
		return response, err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	text = []byte(strings.ReplaceAll(string(text), "uid-1", "uid-2"))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return response, nil
}

// TestAnswersOfOtherObjects shows the handling of a write that took effect and whose answer shows another object.
func TestAnswersOfOtherObjects(t *testing.T) {
	run(t, map[string]scenario{
		"Closing": {"the object is read again, no handler is called twice, and the memory stays bound",
			func(w *harness) {
				p := w.start(onCreate("a", all(appends("a", "spec", "list"), returns("r"))))
				connection := &misroutedConnection{p.link, true}
				p.handling.Writer = &patching.PatchWriter{
					Client: patching.NewObjectClient(
						memapi.Config(connection), &http.Client{Transport: connection},
						w.resource().GroupVersionResource(),
					),
				}
				if _, err := p.pass(); err == nil || !strings.Contains(err.Error(), "uid-2") {
					w.t.Errorf("want an error that names the other uid, got %v", err)
				}
				connection.broken = false
				p.settle()
				w.wantCalls("all", "0s create a")
				w.wantAt("all", []any{"a"}, "spec", "list")
				w.wantAt("all", "uid-1", "metadata", "annotations", boundToAnnotation)
				w.wantClean("all")
			}},
	})
}

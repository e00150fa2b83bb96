package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// namespaces is the resource of namespaces.
var namespaces = memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}

// createNamespace creates a namespace without HTTP.
func (c *Cluster) createNamespace(name string) error {
	return c.createObject("/api/v1/namespaces", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	})
}

// createObject creates an object without HTTP. Admission and defaults apply as to a client's request.
func (c *Cluster) createObject(path string, object map[string]any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, "http://memory"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.memory.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return nil
}

package devcluster

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// namespaces is the resource of namespaces.
var namespaces = memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}

// createNamespace creates a namespace past HTTP.
func (c *Cluster) createNamespace(name string) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	r, err := http.NewRequest(http.MethodPost, "http://memory/api/v1/namespaces", bytes.NewReader([]byte(body)))
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

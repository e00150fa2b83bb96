package controlplane

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
)

const (
	adminName  = "admin"
	adminGroup = "system:masters" // has every right, whatever RBAC says
)

// User makes a user, who has no rights but those that RBAC gives to the name and the groups, and returns the path of
// their kubeconfig file. A service account is the user "system:serviceaccount:<namespace>:<name>" in the groups
// "system:serviceaccounts" and "system:serviceaccounts:<namespace>".
func (c *ControlPlane) User(name string, groups ...string) (kubeconfig string, err error) {
	credentials, err := c.ca.user(name, groups)
	if err != nil {
		return "", fmt.Errorf("making user %q: %w", name, err)
	}
	data, err := json.MarshalIndent(c.kubeconfig(name, credentials), "", "  ")
	if err != nil {
		return "", fmt.Errorf("making user %q: %w", name, err)
	}
	path := filepath.Join(c.dir, url.PathEscape(name)+".kubeconfig")
	return path, save(path, data)
}

// kubeconfig has everything inside, so that the file can be copied. JSON is YAML; []byte becomes base64 as it should.
func (c *ControlPlane) kubeconfig(name string, credentials pair) map[string]any {
	const cluster = "controlplane"
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []any{map[string]any{"name": cluster, "cluster": map[string]any{
			"server":                     c.url,
			"certificate-authority-data": c.ca.pem(),
		}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{
			"client-certificate-data": credentials.certificate,
			"client-key-data":         credentials.key,
		}}},
		"contexts": []any{map[string]any{"name": cluster, "context": map[string]any{
			"cluster": cluster,
			"user":    name,
		}}},
		"current-context": cluster,
	}
}

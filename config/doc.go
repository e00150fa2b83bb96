// Not part of the public API.
//
// Package config embeds those manifests of its folder that the command manifests of an operator prints. The folder is
// for kustomize as well: see its README.md.
package config

import "embed"

// Files are the manifests: the kinds of peering, the alerts and the dashboard.
//
//go:embed crd/peerings.yaml monitoring/alerts.yaml monitoring/dashboard.json
var Files embed.FS

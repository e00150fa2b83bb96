// Package monitoring compares docs/metrics.md, and the dashboard and the alerts in config/monitoring, with the metrics
// of an operator that runs in virtual time. It also shows that gauges fall again.
//
// It stands apart as it belongs to no package: the families are in internal/metrics, their values come from
// everywhere. It has nothing but tests, and starts no server.
//
// Neighbours: facade and its test kit.
package monitoring

// Package alerts evaluates the rules of config/monitoring/alerts.yaml over time series that its tests write down: each
// alert fires when it should, and stays silent otherwise.
//
// It uses Prometheus' own parser, engine and templates. Only the state of an alert, pending and then firing, is its
// own: promtool and the package rules need more than four times as many packages, clients of three clouds among them.
// It is a module of its own, so that other modules do not require Prometheus.
//
// Names of metrics and labels are compared with those of a running operator in the package above.
package alerts

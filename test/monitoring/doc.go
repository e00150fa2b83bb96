// Package monitoring compares what operators are watched by with what they tell: docs/metrics.md, and the dashboard and
// the alerts in config/monitoring, with the registry of an operator that runs in virtual time; and it shows that what
// can go up goes down again.
//
// It stands apart as it belongs to no package: the families are in reconcilers/metrics, their values come from
// everywhere. It has nothing but tests, and starts no server.
//
// Neighbours: facade and its test kit.
package monitoring

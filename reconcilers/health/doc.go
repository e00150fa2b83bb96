// Not part of the public API.
//
// Package health checks whether an operator is doing its work, from the reports of its parts: the process, the
// orchestrator, the controllers, their watches and their workers. Health collects the reports. [Health.ReadyChecks] and
// [Health.AliveChecks] return the checks.
//
// A check reads stored reports only and sends no requests. So it is quick, and an unreachable API server does not
// restart the process. A paused operator, and one that is not the leader, are healthy.
//
// Neighbours: package reconcilers passes the checks to the manager; package controller reports.
package health

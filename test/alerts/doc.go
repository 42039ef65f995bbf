// Package alerts holds the alerts, the dashboard and the runbook against each other and against the list of metrics; with the
// tag stack, also against Prometheus' own promtool.
//
// # Decisions
//
// The list of metrics (bootstrap/reference/metrics.md) is generated from the registry and held fresh by the registry's own test,
// so a name that is on it is a metric of the service. That each alert can fire, and can stay silent, is in alerts_test.yaml beside
// the rules; that the service itself makes its condition true is in test/e2e.
package alerts

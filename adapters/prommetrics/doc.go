// Package prommetrics counts what the service does and shows it to Prometheus, from a registry of its own.
//
// # Decisions
//
// What is counted per call of a port is counted around the port (ports.go), so no use case knows of it; what a use
// case counts anyway is read from it when it is asked for (collector.go). What costs a reading comes from one survey in
// the background, shared by all scrapes: a scrape asks no server.
//
// A reading that failed is an absent sample and a …_readable of 0, never a 0 of its own. The oldest open flow is
// shown also where some gates could not be read: it is at least that old.
//
// No label comes from a request. Routes are templates or "unmatched", methods the known ones or "_OTHER". The label
// product is on gauges alone, for at most a hundred products; the others are added up as product="other", drift without
// its sign. A product is named in order of its id while its sale is not over.
//
// The orders of a product are summed one product at a time, and again when its stock version moved, or after an hour:
// a sum goes through all of them. So an oversale that moved no version, which none of our code can make, shows within
// the hour; one below zero at either side shows at once.
//
// The children of the request histogram are looked up once for each route and status, not for each request.
package prommetrics

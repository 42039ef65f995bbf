// Package oteltrace traces purchases with OpenTelemetry, around doors and ports.
//
// # Decisions
//
// Off unless the standard variables name an endpoint (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
// then nothing is wrapped and nothing of it costs anything. Sampler, batches, headers and names are read from OTEL_*
// by the SDK itself.
//
// A batch belongs to many requests, so it has spans of its own that are linked to those of the requests, and is no child of
// any. Use cases know nothing of this: whoever waits for a purchase is found by its key, in a table that holds a request
// only while it waits. The message carries the context of its send, so that its local transaction, its check-backs
// and its delivery, at whatever instance, name it. A delivery is a trace of its own, linked to each message in it.
//
// Spans of Redis and the database stand around the ports, not in the drivers: a call of a port is one round trip or one
// transaction there, and a span of each statement would tell no more. Links and ids of a batch are capped at what the
// SDK keeps.
package oteltrace

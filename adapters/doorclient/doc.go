// Package doorclient is a typed client of both doors and the models of what they say. It is for the Go programs of a
// shop (its storefront buys at the buyers' door, its back office asks the operators') and for the commands of this service.
//
// Client gives the answer as it came, ClientWithResponses reads it into the models as well. New makes either's
// Client ready for a door: a bearer token, and no request that is sent twice by itself.
//
// # Decisions
//
// All but New is generated from adapters/echohttp/openapi.yaml, so a path, a parameter or a field is written by hand
// in one place. The generator is a module of its own (generate), which the service does not depend on; make verify
// generates again and compares. Tests hold the client against the document, and the doors' tests read
// every answer through its models.
//
// What may be null is a pointer: nil is what could not be read, and never 0.
package doorclient

//go:generate go -C generate tool oapi-codegen -config config.yaml ../../echohttp/openapi.yaml

// Package check holds the files of the delivery against their own schemas where no container engine and no cluster
// runs: the Dockerfile is parsed by the builder's own parser, compose.yaml loaded by compose's own loader, and each
// Kubernetes object decoded into its type, unknown fields refused. It is a module of its own, so that none of those
// parsers is a dependency of the service. `make verify` runs it.
package check

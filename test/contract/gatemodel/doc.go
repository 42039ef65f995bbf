// Package gatemodel is the gate in plain Go: what the ports' comments say, without a server.
//
// It exists to be compared with the scripts, so it shares no code with them; only the settling
// table is the domain's own. A Store is what Redis would hold. A Gate is one process on it,
// with the memory of what that process has seen.
package gatemodel

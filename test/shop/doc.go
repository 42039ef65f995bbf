// Package shop runs the service as its users do, for black-box tests: the built binary, on the
// embedded profile in a folder of its own, or on the real servers with a database, a topic,
// groups and a key prefix of its own.
//
// # Decisions
//
// A shop can be killed, stopped and started again on what it left behind; its settings stay. A
// test that has to reach behind the doors does so through the same adapters that the service
// uses, connected to the same servers (Gate, Store, Publish); the embedded profile has no behind
// that another process could reach, so for such a test it runs in the test's own (StartHere).
package shop

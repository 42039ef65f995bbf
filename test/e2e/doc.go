// Package e2e plays whole stories with the built service, on both profiles where a profile has what
// the story needs: a sale with its crowd, a kill and an ordered stop under load, messages that come
// late, three times or never, servers that are away, and the commands.
//
// # Decisions
//
// Every story ends with the service's own verdict on A to E, and, where answers were lost on the way,
// with what each buyer was told (the journal), which the service does not know. Faults are placed by
// what was seen (so many were accepted), not by the clock. The relay is switched off where it
// would do what the story wants of another part.
package e2e

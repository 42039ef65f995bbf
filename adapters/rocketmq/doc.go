// Package rocketmq carries batches by RocketMQ's transactional messages: the Producer sends them
// and answers check-backs, the Consumer delivers them.
//
// # Decisions about the client
//
// Every client object has an instance name of its own. Two objects of one name share a connection
// on which only the first one's check-backs are wired, whichever fx happens to build first.
//
// No caller's context reaches the client: an ended deadline becomes a write deadline of the
// shared connection and destroys it for everyone. A send runs on its own, in one of SendersMax
// places, and the caller waits beside it. The client sends once (no retries): sending again is
// the relay's decision.
//
// Bodies are not compressed: of a message of 150 purchases zlib took this process more time, both ways, than writing and
// reading the message, to spare the broker some ten KB. Compressed ones of others are read all the same.
//
// Committed means status OK and state commit, both. Any other status is rolled back by the client
// without asking, with a nil error.
//
// The broker learns of a producer by the heartbeat to brokers that it has sent to. So Start sends
// a half message that is rolled back; without it an idle producer is never asked about the halves
// of its predecessor.
//
// The listener's methods recover and have a deadline: a panic would end the one goroutine that
// answers check-backs, and a wait would hold up all of them. A half whose body cannot be read is
// committed: nothing can be asked about it, and the consumer parks it, so that it is seen.
//
// # Decisions about consuming
//
// A callback returns success when its messages are finished, and nothing else: to ask for a retry
// sends messages to a retry topic, where a barrier cannot see them. So a refused group is handed
// over again in place, with a growing pause, and the client's own expiry, which sends back what
// is older than ConsumeTimeout, is set beyond any outage. An outage of more than two minutes
// makes the client give up a queue and take it again: duplicates, no loss.
//
// The broker believes in a consumer for two minutes after its last heartbeat. One that hangs keeps its queues that
// long, and so does a ghost: a client that died while the broker hung, whose heartbeat the broker reads after it has
// seen the connection's end. Nothing a client may ask tells a ghost from the living. So what is sent
// again goes to a queue that this instance consumes: the first try takes turns over all queues, the second, five
// seconds later, needs nobody else. A drain still waits for a ghost, since its barriers go through every queue.
//
// Callbacks hold one pull of one queue. They hand it to GroupsMax gatherers, each of which takes
// what waits: a quiet service answers at once, a busy one works in groups.
//
// Stop follows the only order that loses nothing and sends nothing back: new callbacks are held,
// the running ones finish, the client shuts down, and those that were held return into a queue
// that the client has dropped, where their result counts for nothing.
//
// # Graves
//
// The broker moves a half that it has asked about too often to TRANS_CHECK_MAX_TIME_TOPIC (one queue,
// halves of every producer of the cluster, properties kept: REAL_TOPIC and PGROUP tell ours), and a
// message that was delivered too often to %DLQ% and the group's name. It makes both topics when it
// first needs them, so Graves looks for them now and then and makes a Consumer of its own group for each
// once it is there; nearly always there is none.
//
// # Inspecting
//
// The library has no call for a broker's settings, its state, or a group's connections, so the Inspector
// speaks the protocol itself, on connections that it closes again. It never asks a broker to ask a client
// (running info, consumer status): the library answers that from maps without a lock, which can end a process. So
// members whose subscriptions differ are found by what the broker has at the moment of the question.
//
// # Barriers
//
// The client starts the callbacks of a queue in no order, so a barrier is held back until every
// message that was pulled before it from its queue is finished. What has been pulled is learnt
// from the filter hook, which runs in the pulling goroutine before anything is dispatched. Books
// are kept per assignment (the client makes a new queue object for each): an assignment starts at
// the lowest offset that its predecessor left unfinished.
//
// Drain leaves one half unanswered on every broker, waits for its check-back, gives answers that
// are under way their time, then sends a barrier through every queue and waits for each. The
// halves belong to the transactional group. The listener leaves the first check-back of a barrier half open and
// answers the second: a question that went to an instance which died of it has then been asked again, of
// another one, since the broker puts a half that was left open behind the others in their order. The barriers are
// sent by a plain producer of another group, since a broker would ask any member of the first
// one.
package rocketmq

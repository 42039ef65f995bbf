// Package application holds the use cases: one a file, each readable as the story of what happens.
// It imports the domain and application/port, and knows no driver.
//
//	use case             driven by                          ports
//	DeductStock          buyers' door                       Gate Sender Catalog Clock IDs, Leases Suspects
//	ShowOrder            buyers' door                       Ledger Gate Catalog
//	AwaitOrder           buyers' door                       ShowOrder
//	CancelOrder          buyers' door                       Ledger Gate Outbox Catalog, Suspects
//	ConfirmDeductions    broker, local transaction          Gate
//	ResolveDeductions    broker, check-back                 Gate Ledger BarrierLog Clock, Suspects
//	SettleDeductions     broker, delivery                   Ledger Gate Outbox Parking BarrierLog Clock IDs, Suspects
//	RelayOpenFlows       itself, each second                OpenFlows Gate GateAdmin Ledger Outbox Sender Catalog BacklogReader IDs, Suspects
//	ReplayParked         itself, operators' door, command   Parking AuditLog, SettleDeductions
//	ParkDiscarded        broker, what it gave up on         Parking Clock IDs
//	Lease                itself, each second                Epochs
//	WatchGates           itself, each second                Catalog Epochs GateAdmin, Suspects
//	RebuildStock         Suspects                           Epochs Catalog GateAdmin OpenFlows Drainer, Lease
//	OpenSale             operators' door                    Catalog, RebuildStock
//	PauseSale            operators' door                    Catalog GateAdmin
//	RebuildByHand        operators' door                    Catalog Epochs Ledger GateAdmin AllFlows AuditLog, Suspects
//	ChangeStock          operators' door                    Changes Ledger Outbox Catalog Gate Sender AuditLog Clock IDs, Leases Suspects
//	ShowStock            both doors                         StockEyes (Catalog Gate GateAdmin OpenFlows Ledger Outbox) Clock
//	ShowPipeline         operators' door                    StockEyes Parking BacklogReader Clock, stats of the others
//	SurveySale           itself, each five seconds          StockEyes Book Parking BacklogReader Clock
//	TracePurchase        operators' door                    StockEyes Book Parking BacklogReader Clock, RelayOpenFlows
//	ShowOverview         console                            StockEyes Clock, ShowPipeline, Readiness, DeductStock (stats, latest)
//	ListParked           operators' door                    Parking
//	ReconcileStock       schedule, operators' door, command StockEyes Gate Sender ReportStore AuditLog, Suspects
//	VerifyBooks          operators' door, command           StockEyes Book Clock
//	Examine              start, operators' door, command    Inspectors Catalog GateAdmin Clock
//	Readiness            both doors                         one check for each part that can be away
//
// # Decisions
//
// The lane. One for the instance, whatever the product: with a lane a product, many products at
// once make batches of one. Its batch is whatever waited while the last one was in flight, so there
// is no timer and no tuning between an idle and a loaded service. Before it takes them it yields once: else
// a quick gate was asked for one or two purchases at a time, however many buyers stood ready to
// run, and with that every one of them paid for a whole call. A caller who leaves before the
// deduct takes the purchase along, by one compare-and-swap that the lane would else have won; a
// caller who leaves later is told that the outcome is unknown. Sends run on a context of their
// own: a buyer who hangs up does not tear a message. A repeat of what has no row yet is sent again
// before it is answered: answered from the gate alone, the second click of a buyer whose first was
// still on its way was told 202, and a kill of the embedded profile, which loses gate and instance
// together, took the purchase back. Products that the gate has no record of are
// looked up beside the lane, so that a slow database holds up no purchase.
//
// The intake. While nothing can be sent on, or too much is on its way, the lane takes nobody new, so that
// a dead broker does not eat the stock. It judges by what the lane and the relay see anyway: sends that
// fail one after another, and the open flows that the relay has counted. A batch then costs one look at
// the flows instead of one deduct, so a known token gets its answer. One purchase a second goes on as ever:
// without it nobody would learn that the broker is back, since another instance may have finished all
// that was open.
//
// A damaged product. Rows decide also where the database went back: what the gate alone still knows is
// written as a row first, confirmed or cancelled as the operator chooses, and then the ordinary road is taken,
// with a stock version and an epoch beyond what the gate was told. So no road but the rebuild's writes numbers to a gate, and
// a call that was cut off is simply made again. Stock changes are left to the operator: their flows do not
// say whether they added or took.
//
// Answers. Each outcome of the gate has one answer, in receiptOf. Whatever the table does not
// name is "unknown", and so is a panic: the safe side is never a refusal.
//
// Stock changes. A withdrawal is a deduction of a reserved user: taken at the gate by Adopt, which asks
// for no window, pause or limit, and from then on finished by message, relay, rebuild and
// reconciliation like any purchase. An addition begins in the ledger and needs no gate: its row is the outbox
// entry that the gate is told from. One token is one row, whichever of the two it stands for. An addition and
// a withdrawal that are asked under one token in the same moment can each find the other missing; the row
// decides, the withdrawal's units are then held by no row, and the tell that finds them has the product rebuilt.
//
// The relay keeps no clock for each flow. It notes the sequence that a gate has each second; a
// flow with a sequence that was reached OpenAge ago is older than OpenAge. That is a few numbers a
// product, on the monotonic clock, and a gate that fell back starts anew. What is kept for each
// flow, in a bounded memory, is how often it was sent again. It gathers flows of all products
// before it sends, since a message holds any product, and it walks through the open set in
// pages, so that flows which cannot be finished do not stand before others.
//
// Settling finishes what it can, whatever else of the call has to come again: rows that were
// written are told, and what is parked is parked, before an error is returned. A straggler of
// our own form waits in place for a gate that is shut; when the database suspends the product, the
// next try applies it without the gate, so it cannot hold up the drain. One in the plain form
// is parked and replayed, as it would be while the product is suspended. A replay that would be
// parked again stays as it is, since parking the same copy twice stores nothing. A replay claims
// nothing, whatever its message says: it asks the gate for its units first, so that a message
// parked long ago takes no unit which the gate has given to somebody else since.
//
// Only what was parked because its product was not open is replayed by itself. An unknown product that
// is put on sale later may be another one of the same name, so an operator decides.
//
// An examination's rules are one table (examine_*.go): a reading's name, what is right, why, how to change it.
// Inspectors judge nothing and rules read nothing, so each is tested without the other. What could not be read
// is unknown; where a promise hangs on it, that is as far from healthy as wrong is. A difference of clocks is
// found, not repaired: sale windows follow the service's clock, ages the monotonic one.
//
// Rebuilding together. Any number of instances may be on the road with one product: each suspension has a number in
// the ledger, and a drain counts for that one alone, so that no attempt builds on a drain from before a sale.
// Who finds the lease held waits with its drain done and takes over when the holder is gone. An attempt renews
// its lease while it writes rows back, however many; the reopening is in the transaction that read what the
// gate was made of, so that nothing slips in between. Accepted is told within the lease alone: a suspension
// that nobody heard of yet has not been drained then.
//
// Proofs of a loss. Beside the gate's own (server, epoch, sequence, newest own flow, size of the open set), an order that is
// confirmed under the gate's own epoch proves that its flow is there; if it is not, the product is rebuilt.
//
// One shard that is away: looks at several products give each its own error, the suspension goes on where a gate
// cannot be shut (its lease runs out), and attempts are made only where the gate answers.
//
// While a product is suspended, what its last gate sold is applied at once: that is the drain. A message of a gate
// before that one is not: the last gate was built without it and has sold its units again, so it is parked as
// "not open" and asks for its units when the product is open. (Found by test/simulation: two losses of Redis with a
// message between them cost a buyer of the new gate the order.)
//
// The survey. What costs a reading is read by one goroutine, whoever shows it, so that ten scrapers cost no more than
// none. It calls drift only what two rounds agree on with nothing open and nothing untold; a sum of a product's orders goes
// through all of them, so one product is summed at a time, in a twentieth of the time.
//
// Tells are best effort everywhere: the row says gate_told = 0 until the gate has acknowledged, and
// the relay repeats what is left.
package application

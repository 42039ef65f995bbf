// Package ledgermodel is the ledger in plain Go: what the ports' comments say, without a database.
//
// It passes the contract suite of the ledger, so a simulation may trust it in place of a database.
// Its ids are numbers in order of birth, its clock is time.Now, and whoever waits for a row's lock
// waits on a channel: in a synctest bubble it is as exact as the bubble's time.
//
// A Flaw takes one rule away, so that a checker can be shown to miss it.
package ledgermodel

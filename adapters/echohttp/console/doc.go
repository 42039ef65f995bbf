// Package console is the operators' console: a page that shows the service live and drives it through the
// operators' API. It is mounted by the operators' door.
//
// # Decisions
//
// The page acts through the operators' own API, which the door answers a second time below /console/api for those
// who are signed in here. So an action has one implementation, one set of checks and one set of answers, and what
// the page does can be copied as curl.
//
// Signing in: the token comes in the fragment of a link, which no log sees, or by hand, and goes by a form to a cookie
// that no script reads (HttpOnly) and no other site sends (SameSite=Strict). The cookie has no Path: a browser
// then sends it below /console alone, also behind a proxy that puts a prefix in front. It holds the token itself, so a session is what the
// token is: as long, and with its scopes, asked each time. The API itself takes no cookie. What changes something needs a header that holds
// a code derived from the token: another site can neither set nor know it. The form of the sign-in carries a
// random code that its own cookie repeats, so that nobody is signed in by another site. Link spells an address that signs in; with a
// fresh token in it, bootstrap's App.ConsoleLink(30*time.Minute) is what a start may print, once. What it signs in ends with that token.
//
// One look a second for the instance, whoever watches, and none while nobody does. A picture is marshalled
// once. A stream waits for the next picture and takes the newest, so a slow reader leaves some out and keeps
// nobody waiting; nothing is queued.
//
// What watching costs is measured by BenchmarkViewers of test/console. On two shared, busy cores, 2026-12-03, three rounds at 1,000
// purchases a second on the real servers: 0.37 s of CPU a second without and with 20 viewers (1.2 % less with them: noise),
// 0.96 pictures a second. The charts' code is 22,124 bytes by gzip.
//
// Assets are embedded, and no build makes them: one style sheet, one module, and uPlot as its authors ship it. Nothing is
// asked of any other host; the policy of the page forbids it, and that text becomes markup.
//
// In the embedded demo, and nowhere else, the page also buys: see package echohttp. No token is made for it.
//
// A parked message has no button that discards it. It may be a purchase that somebody was promised, and perhaps the only copy that
// says so: it stays as evidence until a replay has finished it, and then too, with the time of that. One that never can be
// applied costs a row and a number that an operator knows. When old rows go is for the database's housekeeping, by those who
// answer for its data, not for a click beside "replay".
//
// Without script the page signs in and out by forms, and loads itself again every five seconds: the pipeline's counts and the
// answers since the start, and the table of products with both sides and whether they agree, "?" where something could not be
// read. Rates are "?" there. Charts, the sums of the headline, what was accepted last, search, trace and every action need the script,
// and are not shown; the API and the commands do without.
package console

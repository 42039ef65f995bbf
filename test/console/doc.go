// Package console plays the operators' console in a real browser, headless Chromium: a whole sale on the real servers, and
// one test for each fault that consoles of this kind shipped with.
//
// # Decisions
//
// Every page is watched from its first request to its end: a request to any other host, a word in the browser's console
// that the test did not foresee, or a finding of axe-core, in light and in dark, fails the test. Chromium itself writes
// each failed request into its console, so a test says which ones it provokes.
//
// The faults are played on a stage: the real page and the real hub, with numbers and answers that the test makes up, since
// a lag that cannot be read or a plan that has moved on are hard to come by.
//
// Screens are kept in the folder out, to be looked at.
//
// axe-core (MPL-2.0, testdata) is used by tests alone and is no part of the service.
package console

// Package architecture holds the tests of the tree's shape: which package may
// import which, and what lies at the top.
//
// The linter has the same arrows for the editor. They stand here as well because
// a rule of the linter names files, and a new folder can slip through it; this
// test starts from the list of all packages and refuses one it has no rule for.
package architecture

#!/bin/sh
# Lists packages with tests, one a line, for the Makefile.
#
#   packages.sh unit|stack|rest race|plain
#
# unit   tests that need only Go
# stack  packages with tests behind the build tag stack (their other tests included)
# rest   unit without the packages of stack: what is left when stack runs as well
# race   no RocketMQ client in the test binary: it has data races of its own, which
#        the race detector would report and we cannot mend; nor an exploration of
#        a model and the simulation, of which one goroutine runs at a time
# plain  the others
set -eu

# A line per package with tests: path, "|", what follows. The word in front of the
# bar is the test binary's path without ".test".
binaries() {
	go list -test -tags "$1" -f '{{.ImportPath}}|{{join .Deps " "}}' ./... | sed -n 's/^\([^ |]*\)\.test|/\1|/p'
}

# Packages whose list of test files is another one with the tag stack.
tagged() {
	files='{{.ImportPath}}|{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}'
	without=$(go list -f "$files" ./...)
	go list -tags stack -f "$files" ./... | while IFS= read -r line; do
		printf '%s\n' "$without" | grep -qxF "$line" || printf '%s\n' "${line%%|*}"
	done
}

case $1 in
unit) list=$(binaries '') only='' except='' ;;
stack) list=$(binaries stack) only=$(tagged) except='' ;;
rest) list=$(binaries '') only='' except=$(tagged) ;;
*) echo "packages.sh: unit, stack or rest, not $1" >&2 && exit 2 ;;
esac

printf '%s\n' "$list" | while IFS='|' read -r package deps; do
	[ -n "$package" ] || continue
	if [ "$1" = stack ] && ! printf '%s\n' "$only" | grep -qxF "$package"; then continue; fi
	if printf '%s\n' "$except" | grep -qxF "$package"; then continue; fi
	case " $package $deps " in
	*' github.com/apache/rocketmq-client-go/'* | *' seckill/test/model/'* | *' seckill/test/simulation '*) kind=plain ;;
	*) kind=race ;;
	esac
	if [ "$kind" = "$2" ]; then printf '%s\n' "$package"; fi
done

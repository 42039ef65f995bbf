#!/bin/sh
# Fuzzes both doors of an embedded service by the document: run.sh BINARY CACHE [SECONDS a door]. Installs the fuzzer
# into CACHE at its first run (Python 3 with venv).
set -eu
binary=$1 cache=$2 seconds=${3:-60}
here=$(cd "$(dirname "$0")" && pwd)
version=4.32.5
fuzzer=$cache/schemathesis-$version/bin/schemathesis
if [ ! -x "$fuzzer" ]; then
	python3 -m venv "$cache/schemathesis-$version"
	"$cache/schemathesis-$version/bin/pip" --quiet install "schemathesis==$version"
fi

folder=$(mktemp -d)
"$binary" serve --profile embedded --demo --data "$folder/data" --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 2>"$folder/log" &
service=$!
trap 'kill "$service"; wait "$service" || true; rm -r "$folder"' EXIT
tries=0
until grep -q '"serving"' "$folder/log"; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ]; then cat "$folder/log" >&2; exit 1; fi
	sleep 0.1
done
door() { sed -n "s/.*\"event\":\"serving\".*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/log"; }
token() { "$binary" token --data "$folder/data" "$@"; }

cd "$folder" # its own files stay there
fuzz() {
	address=$1 bearer=$2; shift 2
	"$fuzzer" --config-file "$here/schemathesis.toml" run "$here/../../adapters/echohttp/openapi.yaml" --url "$address" \
		--header "Authorization: Bearer $bearer" --max-time "$seconds" --continue-on-failure --warnings off --no-color "$@"
}
status=0
fuzz "$(door buyers)" "$(token --sub alice)" --include-path-regex '^/(api|healthz|readyz|openapi|docs|problems)' || status=1
fuzz "$(door operators)" "$(token --sub ops --scope 'stock:admin reconcile:run ops:read')" --exclude-path-regex '^/(api|debug)' || status=1
exit $status

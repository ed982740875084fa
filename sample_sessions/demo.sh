#!/bin/sh
# What `make demo` shows: the sample sessions in an index of their own, which is thrown away before the next demo.
set -eu
here=$(dirname "$0")
AGTRACE_DATA_DIR=$(pwd)/$DEMO
export AGTRACE_DATA_DIR
rm -rf "$AGTRACE_DATA_DIR"

show() {
    printf '\n\033[1;36m$ agtrace %s\033[0m\n' "$*"
}

show index sample_sessions
"$BIN/agtrace" index "$here"
show sessions --limit 8
"$BIN/agtrace" sessions --limit 8
show search "'database is locked'" --kind error --limit 3
"$BIN/agtrace" search 'database is locked' --kind error --limit 3
show show d41f7a52:853
"$BIN/agtrace" show d41f7a52:853
show analyze 01a0ec9d
"$BIN/agtrace" analyze 01a0ec9d
show report --html .demo/report.html
"$BIN/agtrace" report --html "$AGTRACE_DATA_DIR/report.html"
unset AGTRACE_DATA_DIR
show setup claude
"$BIN/agtrace" setup claude

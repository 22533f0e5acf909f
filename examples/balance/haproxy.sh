#!/bin/sh
# Converts a server behind haproxy, by its run-time API:
#
#   convert = "examples/balance/haproxy.sh /run/haproxy.sock"
#
# Each site is a backend of its name, and each backend has all nodes as servers; those of other sites begin as `disabled`. The socket is one
# of `stats socket /run/haproxy.sock level admin`.
set -eu
socket=$1

say() {
    echo "$1" | socat stdio "UNIX-CONNECT:$socket"
}

state() {
    # haproxy says nothing when it has done what it was told.
    answer=$(say "set server $1/$NODE state $2")
    if [ -n "$answer" ]; then
        echo "haproxy: $answer" >&2
        exit 1
    fi
}

sites=$(say "show backend" | grep -v '^#')
state "$SITE" ready
for site in $sites; do
    if [ "$site" != "$SITE" ]; then
        state "$site" maint
    fi
done

#!/bin/sh
# Converts a server behind nginx:
#
#   convert = "examples/balance/nginx.sh /etc/nginx/sites 127.0.0.1:8001 /etc/nginx/nginx.conf"
#
# The folder has a file SITE.servers for each site, with lines such as `server 127.0.0.1:8001;`, and the configuration includes them:
# `upstream shop { include /etc/nginx/sites/shop.servers; }`. The line of this server goes to the file of its new site.
set -eu
folder=$1 address=$2 configuration=$3

# Servers are converted one after the other.
exec 9>"$folder/lock"
flock 9

# First in its new site, so that no file is without a server.
for list in "$folder/$SITE.servers" "$folder"/*.servers; do
    { grep -vxF "server $address;" "$list" || true; } >"$list.new"
    if [ "$list" = "$folder/$SITE.servers" ]; then
        echo "server $address;" >>"$list.new"
    fi
    mv "$list.new" "$list"
done
nginx -q -t -c "$configuration"
nginx -c "$configuration" -s reload

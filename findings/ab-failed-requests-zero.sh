#!/usr/bin/env bash
# Guess: "Failed requests: 0" of ab means that every request succeeded.
# Real: ab compares the length of each response with the first. If every response is an error
# page of the same length, "Failed requests" is 0 and ab exits with 0. Only the line
# "Non-2xx responses" shows the errors.
# Package: apache2-utils 2.4.71-1~deb12u1 of Debian 12. Source: github.com/apache/httpd
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq -o APT::Sandbox::User=root \
    apache2-utils=2.4.71-1~deb12u1 libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1
for package in *.deb; do dpkg -x "$package" .; done

libraries=$folder/usr/lib/$(uname -m)-linux-gnu
ab() { LD_LIBRARY_PATH=$libraries usr/bin/ab "$@"; }

cat > server.py <<"EOF"
from http.server import BaseHTTPRequestHandler, HTTPServer


class Failing(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"error")

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Failing)
print(server.server_port, flush=True)
server.serve_forever()
EOF
mkfifo port
python3 server.py > port &
trap 'kill %1; rm -rf "$folder"' EXIT
read -r number < port

ab -V | head -n 1
code=0
ab -q -n 20 "http://127.0.0.1:$number/" > report || code=$?
grep -E "^(Complete|Failed|Non-2xx|Requests)" report
echo "exit code $code; the server answered every request with status 500"

[[ $code == 0 ]] || changed "ab exits with $code, not 0"
grep -qE "^Failed requests: +0$" report || changed "failed requests are counted"
grep -qE "^Non-2xx responses: +20$" report || changed "there is no line of 20 non-2xx responses"

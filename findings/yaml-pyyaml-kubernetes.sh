#!/usr/bin/env bash
# Guess: PyYAML and the YAML reader of kubectl and the API server (sigs.k8s.io/yaml) agree on the
# plain values of a manifest.
# Real: they disagree on exponents without a point (`1e3` is text for PyYAML, 1000 for Kubernetes), on
# `0o17`, on numbers with colons (`12:30:45` is 45045 for PyYAML, text for Kubernetes), and on `y`:
# text for PyYAML, true for Kubernetes, which also turns a key `n` into the key "false".
# Packages: PyYAML 6.0.3 (PyPI), sigs.k8s.io/yaml v1.6.0 (Go).
# Source: github.com/yaml/pyyaml lib/yaml/resolver.py, github.com/kubernetes-sigs/yaml yaml.go
set -euo pipefail

changed() { echo "Behaviour has changed: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > values.yaml <<"EOF"
a: 1e3
b: 0o17
c: 12:30:45
d: y
n: 1
EOF
python3 -m venv venv
venv/bin/pip install -q PyYAML==6.0.3
pyyaml=$(venv/bin/python -c '
import json, yaml
print(json.dumps(yaml.safe_load(open("values.yaml")), separators=(",", ":"), sort_keys=True))')

cat > main.go <<"EOF"
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	text, _ := os.ReadFile("values.yaml")
	made, err := yaml.YAMLToJSON(text)
	fmt.Println(string(made))
	if err != nil {
		os.Exit(1)
	}
}
EOF
export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-mod=mod
go mod init example.org/reader 2> go.log
go get sigs.k8s.io/yaml@v1.6.0 2>> go.log
kubernetes=$(go run .)

echo "PyYAML:     $pyyaml"
echo "Kubernetes: $kubernetes"
[[ $pyyaml == '{"a":"1e3","b":"0o17","c":45045,"d":"y","n":1}' ]] || changed "PyYAML"
[[ $kubernetes == '{"a":1000,"b":15,"c":"12:30:45","d":true,"false":1}' ]] || changed "Kubernetes"

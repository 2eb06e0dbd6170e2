//go:build tools

// Package programs names the key-value store below a Kubernetes API server.
package programs

import _ "go.etcd.io/etcd/server/v3"

//go:build tools

// Package programs names the simulator of nodes that the placement tests use.
package programs

import _ "sigs.k8s.io/kwok/cmd/kwok"

//go:build !amd64 || purego

package cpu

import "runtime"

// paths lists what this processor and system can do, the best first.
func paths() []path { return []path{purego} }

// pause passes a moment.
func pause(int) { runtime.Gosched() }

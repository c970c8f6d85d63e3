//go:build !linux && !purego

package cpu

import "infer/runtime/device"

// allowTiles refuses: how to ask for tile registers is known on Linux only.
func allowTiles() error { return device.ErrNotSupported }

//go:build cuda && cgo && linux

// Program linkcheck holds gorgonia.org/cu and the shim, and nothing else: it
// links only if the shim defines every function of the driver that cu refers
// to. The real program would not show it, since go-nvml tells the linker to
// leave unresolved names to the run time.
package main

// #cgo CFLAGS: -I${SRCDIR}/../.. -I${SRCDIR}/../../include
// #cgo LDFLAGS: -L${SRCDIR}/../../lib -ldl
// #include "shim.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"
)

func main() {
	// Nothing is loaded: every call says so.
	fmt.Println(C.doorEntries(), cu.Version())
}

package engine

import (
	"testing"

	"infer/runtime/device"
	"infer/runtime/devicemap"
)

func TestMemoryOff(t *testing.T) {
	planned := devicemap.Bytes{Weights: 800, KV: 100, Activations: 50, Workspace: 50}
	for _, c := range []struct {
		kind device.Kind
		used int64
		off  bool
	}{
		{device.CUDA, -1, false}, // it does not count
		{device.CUDA, 1000, false},
		{device.CUDA, 1019, false},
		{device.CUDA, 1021, true},
		{device.CUDA, 932, false},
		{device.CUDA, 930, true}, // all but the workspace
		{device.CPU, 1021, true},
		{device.CPU, 736, false},
		{device.CPU, 734, true}, // and a quarter of the weights
	} {
		m := Memory{Device: device.ID{Kind: c.kind}, Planned: planned, Used: c.used}
		if m.Off() != c.off {
			t.Errorf("%v with %d of %d bytes: off %v", m.Device, c.used, planned.Used(), !c.off)
		}
	}
}

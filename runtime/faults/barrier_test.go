package faults

import (
	"testing"

	"infer/runtime/device"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cuda"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// deaf is a stream that forgets to wait for others.
type deaf struct {
	device.Stream
	on bool
}

func (d *deaf) Wait(e device.Event) {
	if !d.on {
		d.Stream.Wait(e)
	}
}

func (d *deaf) CopyTo(dst, src tensor.Tensor) { d.Stream.(device.PeerStream).CopyTo(dst, src) }

// A barrier taken out of a copy lets the simulated machine reorder it, and the
// digests show that, directly and by way of the host; with the barrier no order
// is wrong.
func TestBarrierOnGPUs(t *testing.T) {
	needSim(t)
	for _, route := range []transfer.Route{transfer.PeerDirect, transfer.HostStaged} {
		for _, broken := range []bool{false, true} {
			wrong, found := 0, 0
			for seed := range uint64(8) {
				bad, err := reorder(t, seed, route, broken)
				if bad {
					wrong++
				}
				if err != nil {
					found++
				}
				if bad && err == nil {
					t.Errorf("%v, seed %d: other bytes arrived, and Commit did not see it", route, seed)
				}
			}
			if broken != (wrong > 0) || broken != (found > 0) {
				t.Errorf("%v, barrier removed %t: wrong in %d orders, found in %d", route, broken, wrong, found)
			}
		}
	}
}

// reorder copies once between two GPUs whose destination does not wait for the
// copy, if broken.
func reorder(t *testing.T, seed uint64, route transfer.Route, broken bool) (bad bool, committed error) {
	t.Helper()
	machine, err := sim.New(topology(t, "2x4090-patched-chipset"), sim.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	sys, err := cuda.Open(cuda.Options{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	v := transfer.Surveyor{Infos: sys.Infos(), Links: sys.Links()}
	facts := v.Survey(t.Context()).Facts
	for i := range facts {
		if route == transfer.PeerDirect {
			facts[i].Finding.Verdict = transfer.Healthy
		}
	}
	const n = 4096
	var ends []transfer.End
	var devices []device.Device
	var probers []kernels.Prober
	for i := range 2 {
		b, err := sys.Backend(i)
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Device().NewStream()
		if err != nil {
			t.Fatal(err)
		}
		ops, err := b.NewOps(s)
		if err != nil {
			t.Fatal(err)
		}
		buf, err := b.Device().Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		devices, probers = append(devices, b.Device()), append(probers, ops.(kernels.Prober))
		ends = append(ends, transfer.End{
			Device: gpu(i), Stream: &deaf{s, broken && i == 1}, Ops: ops,
			Tensor: tensor.Tensor{Buf: buf, DType: tensor.U8, Shape: tensor.Of(n)},
		})
	}
	c := transfer.New(transfer.Options{Devices: devices, Router: transfer.NewRouter(facts, transfer.Events{})})
	probers[0].Fill(ends[0].Tensor, 5, 7)
	if err := c.Move(t.Context(), ends[1], ends[0]); err != nil {
		t.Fatal(err)
	}
	var seen kernels.Comparison
	probers[1].Compare(&seen, ends[1].Tensor, 5, 7) // the consumer
	for i := range ends {
		// The destination first: nothing makes the source hurry.
		if err := ends[1-i].Stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return seen.Bad > 0, c.Commit(1)
}

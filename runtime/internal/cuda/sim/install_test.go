//go:build cuda && cgo && linux

package sim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"infer/runtime/internal/cuda"
)

// door opens a machine's GPUs by the way real ones are opened.
func door(t *testing.T, m *Machine) (*cuda.Driver, []*cuda.Device) {
	t.Helper()
	uninstall, err := m.Install()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(uninstall)
	d, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	var devices []*cuda.Device
	for i := range d.Devices() {
		dev, err := d.Device(i)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, dev)
	}
	return d, devices
}

func fromPreset(t *testing.T, name string, o Options) *Machine {
	t.Helper()
	s, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// on runs f on a device's owner.
func on(t *testing.T, d *cuda.Device, f func(*cuda.Thread) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := d.Run(ctx, f); err != nil {
		t.Fatal(err)
	}
}

func TestThroughTheDoor(t *testing.T) {
	m := fromPreset(t, "2xRTX-5090", Options{Checks: CheckAll})
	d, devs := door(t, m)
	if _, err := m.Install(); err == nil {
		t.Error("installed twice")
	}
	p := d.Devices()
	api, version := d.Version()
	if len(p) != 2 || p[1].Name != "NVIDIA GeForce RTX 5090" || !p[1].Simulated || p[1].UUID != m.Device(1).UUID() ||
		p[1].PCI != "0000:02:00.0" || p[0].SMs != 170 || p[0].MemoryGBps != 1790 || p[0].Major != 12 || p[0].PCIeGen != 5 ||
		p[0].FreeBytes <= 31<<30 || api != 13000 || version == "" || p[0].SharedPerBlockOptin != 101376 {
		t.Errorf("driver %d %q, devices %+v", api, version, p)
	}
	if l := d.Link(0, 1); l.PeerAccess || l.Kind != "PHB" || l.P2PStatus != "GNS" || l.StagedGBps == 0 {
		t.Errorf("link %+v", l)
	}
	data := words(1000, 5)
	var x [2]cuda.Ptr
	var q [2]cuda.Stream
	var f [2]cuda.Function
	var e cuda.Event
	var pinned []byte
	for i, dev := range devs {
		on(t, dev, func(th *cuda.Thread) error {
			var errs [6]error
			var mod cuda.Module
			x[i], errs[0] = th.Alloc(4000)
			q[i], errs[1] = th.NewStream()
			mod, errs[2] = th.LoadModule([]byte(kernels))
			f[i], errs[3] = th.Function(mod, "mix")
			if i == 0 {
				e, errs[4] = th.NewEvent(true)
				pinned, errs[5] = th.AllocHost(4000)
			}
			return errors.Join(errs[:]...)
		})
	}
	launch := func(th *cuda.Thread, i int) error {
		return th.Launch(f[i], [3]uint32{16, 1, 1}, [3]uint32{64, 1, 1}, 0, q[i], pack(uint64(x[i]), uint32(3), uint32(i), uint32(1000)))
	}
	on(t, devs[0], func(th *cuda.Thread) error {
		if err := th.CopyPeer(x[1]+1, devs[1], x[0], 4000, q[0]); cuda.Code(err) != int(InvalidValue) {
			t.Errorf("a copy over the end of an allocation: %v", err)
		}
		return errors.Join(th.CopyToDevice(x[0], data, q[0]), launch(th, 0), th.CopyPeer(x[1], devs[1], x[0], 4000, q[0]), th.Record(e, q[0]))
	})
	on(t, devs[1], func(th *cuda.Thread) error {
		return errors.Join(th.WaitEvent(q[1], e), launch(th, 1), th.CopyToHost(pinned, x[1], q[1]))
	})
	for done := false; !done; {
		on(t, devs[1], func(th *cuda.Thread) (err error) { done, err = th.Query(q[1]); return err })
	}
	if !bytes.Equal(pinned, mixed(mixed(data, 3, 0), 3, 1)) {
		t.Error("two devices made other words")
	}
	on(t, devs[0], func(th *cuda.Thread) error {
		return errors.Join(th.FreeHost(pinned), th.Free(x[0]), th.DestroyEvent(e))
	})
}

func TestDoorErrors(t *testing.T) {
	m := fromPreset(t, "RTX-4090", Options{})
	_, devs := door(t, m)
	on(t, devs[0], func(th *cuda.Thread) error {
		_, err := th.LoadModule([]byte("nothing"))
		if cuda.Code(err) != int(InvalidPTX) || !strings.Contains(err.Error(), "ptxas") {
			t.Error(err)
		}
		if _, err := th.Alloc(1 << 40); cuda.Code(err) != cuda.CodeOutOfMemory {
			t.Error(err)
		}
		mod, err := th.LoadModule([]byte(kernels))
		if err != nil {
			return err
		}
		if _, err := th.Function(mod, "none"); cuda.Code(err) != cuda.CodeNotFound {
			t.Error(err)
		}
		f, err := th.Function(mod, "wrong")
		if err != nil {
			return err
		}
		p, err := th.Alloc(64)
		if err != nil {
			return err
		}
		if err := th.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, pack(uint64(p))); err != nil {
			return err
		}
		err = th.Synchronize(0)
		var e *cuda.Error
		if !errors.As(err, &e) || e.Code != int(MisalignedAddress) || !e.Sticky() || e.Name != "CUDA_ERROR_MISALIGNED_ADDRESS" {
			t.Error(err)
		}
		if _, err := th.Alloc(64); cuda.Code(err) != int(MisalignedAddress) {
			t.Error(err)
		}
		return nil
	})
}

func TestGraphsThroughTheDoor(t *testing.T) {
	m := fromPreset(t, "H100", Options{Checks: CheckAll})
	_, devs := door(t, m)
	data := words(64, 1)
	out := make([]byte, 256)
	on(t, devs[0], func(th *cuda.Thread) error {
		p, err := th.Alloc(256)
		if err != nil {
			return err
		}
		s, err := th.NewStream()
		if err != nil {
			return err
		}
		mod, err := th.LoadModule([]byte(kernels))
		if err != nil {
			return err
		}
		f, err := th.Function(mod, "mix")
		if err != nil {
			return err
		}
		if err := th.CopyToDevice(p, data, s); err != nil {
			return err
		}
		if err := th.BeginCapture(s); err != nil {
			return err
		}
		for i := range uint32(3) {
			if err := th.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, s, pack(uint64(p), 3+2*i, i, uint32(64))); err != nil {
				return err
			}
		}
		g, err := th.EndCapture(s)
		if err != nil {
			return err
		}
		x, err := th.Instantiate(g)
		if err != nil {
			return err
		}
		for range 2 {
			if err := th.LaunchGraph(x, s); err != nil {
				return err
			}
		}
		return errors.Join(th.CopyToHost(out, p, s), th.DestroyGraph(g), th.DestroyGraphExec(x))
	})
	want := data
	for range 2 {
		for i := range uint32(3) {
			want = mixed(want, 3+2*i, i)
		}
	}
	if !bytes.Equal(out, want) {
		t.Error("a graph's kernels made other words")
	}
}

func TestHangHasADeadline(t *testing.T) {
	m := fromPreset(t, "2xRTX-4090", Options{Faults: []Fault{{Kind: Hang, From: Host, To: 1}}})
	_, devs := door(t, m)
	stuck := func(ctx context.Context) error {
		return devs[1].Run(ctx, func(th *cuda.Thread) error {
			p, err := th.Alloc(1 << 20)
			if err != nil {
				return err
			}
			return th.CopyToDevice(p, make([]byte, 1<<20), 0)
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var late *cuda.DeadlineError
	if err := stuck(ctx); !errors.As(err, &late) {
		t.Error(err)
	}
	on(t, devs[0], func(th *cuda.Thread) error { _, err := th.Alloc(64); return err })
	if err := m.Close(); err != nil { // so that the owner comes back
		t.Error(err)
	}
}

func BenchmarkLaunchThroughTheDoor(b *testing.B) {
	s, err := Preset("RTX-5090")
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(s, Options{})
	if err != nil {
		b.Fatal(err)
	}
	uninstall, err := m.Install()
	if err != nil {
		b.Fatal(err)
	}
	defer uninstall()
	d, err := cuda.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	dev, err := d.Device(0)
	if err != nil {
		b.Fatal(err)
	}
	err = dev.Run(context.Background(), func(th *cuda.Thread) error {
		mod, err := th.LoadModule([]byte(kernels))
		if err != nil {
			return err
		}
		f, err := th.Function(mod, "mix")
		if err != nil {
			return err
		}
		p, err := th.Alloc(256)
		if err != nil {
			return err
		}
		q, err := th.NewStream()
		if err != nil {
			return err
		}
		params := pack(uint64(p), uint32(3), uint32(1), uint32(32))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := th.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, q, params); err != nil {
				return err
			}
			if i%100 == 99 {
				if err := th.Synchronize(q); err != nil {
					return err
				}
			}
		}
		return th.Synchronize(q)
	})
	if err != nil {
		b.Fatal(err)
	}
}

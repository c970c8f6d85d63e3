//go:build cuda && cgo && linux

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func device(t testing.TB, d *Driver, i int) *Device {
	t.Helper()
	dev, err := d.Device(i)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func on(t testing.TB, dev *Device, f func(t *Thread) error) {
	t.Helper()
	if err := dev.Run(context.Background(), f); err != nil {
		t.Error(err)
	}
}

func TestThreadCalls(t *testing.T) {
	d := open(t, "-DDEVICES=2")
	dev, peer := device(t, d, 0), device(t, d, 1)
	if same := device(t, d, 0); same != dev {
		t.Error("a device has one owner")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	on(t, dev, func(th *Thread) error {
		s, err := th.NewStream()
		must(err)
		p, err := th.Alloc(4096)
		must(err)
		q, err := th.Alloc(4096)
		must(err)
		host, err := th.AllocHost(4096)
		must(err)
		for i := range host {
			host[i] = byte(i * 7)
		}
		must(th.CopyToDevice(p, host, s))
		must(th.Copy(q, p, 4096, s))
		must(th.Set8(p, 0xab, 100, s))
		back := make([]byte, 4096)
		must(th.CopyToHost(back, q, s))
		must(th.Synchronize(s))
		if !bytes.Equal(back, host) {
			t.Error("copies")
		}
		must(th.CopyToHost(back[:101], p, s))
		if back[99] != 0xab || back[100] != host[100] {
			t.Error("set")
		}
		// Nothing to do is done, whatever the address.
		must(th.CopyToDevice(0, nil, s))
		must(th.CopyToHost(nil, 0, s))
		must(th.Copy(0, 0, 0, s))
		must(th.Set8(0, 1, 0, s))
		must(th.EnablePeer(peer))
		must(th.EnablePeer(peer)) // the driver says 704
		must(th.CopyPeer(q, peer, p, 100, s))

		m, err := th.LoadModule([]byte(".version 7.8\n"))
		must(err)
		f, err := th.Function(m, "kernel")
		must(err)
		must(th.SetMaxDynamicShared(f, 100_000))
		regs, local, shared, err := th.FunctionInfo(f)
		if regs != 104 || local != 103 || shared != 101 || err != nil {
			t.Error(regs, local, shared, err)
		}
		// The parameter block arrives as it is: the stub writes it to the
		// address at its beginning.
		params := make([]byte, 20)
		binary.LittleEndian.PutUint64(params, uint64(q))
		binary.LittleEndian.PutUint32(params[16:], 0xdeadbeef)
		must(th.Launch(f, [3]uint32{7, 1, 1}, [3]uint32{128, 1, 1}, 64, s, params))
		must(th.CopyToHost(back[:20], q, s))
		if !bytes.Equal(back[:20], params) {
			t.Error("parameters arrive as", back[:20])
		}
		must(th.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, s, nil))

		e, err := th.NewEvent(true)
		must(err)
		must(th.Record(e, s))
		must(th.WaitEvent(s, e))
		done, err := th.QueryEvent(e)
		if !done || err != nil {
			t.Error(done, err)
		}
		elapsed, err := th.Elapsed(e, e)
		if elapsed != 1500*time.Microsecond || err != nil {
			t.Error(elapsed, err)
		}
		must(th.DestroyEvent(e))
		a, err1 := th.Query(s)
		b, err2 := th.Query(s)
		if a == b || err1 != nil || err2 != nil {
			t.Error("the stub is ready in turns:", a, b, err1, err2)
		}

		must(th.BeginCapture(s))
		g, err := th.EndCapture(s)
		must(err)
		x, err := th.Instantiate(g)
		must(err)
		must(th.DestroyGraph(g))
		must(th.LaunchGraph(x, s))
		must(th.DestroyGraphExec(x))

		mapped := make([]byte, 64)
		must(th.RegisterHost(mapped))
		must(th.UnregisterHost(mapped))
		must(th.UnloadModule(m))
		must(th.FreeHost(host))
		must(th.Free(p))
		must(th.Free(q))
		must(th.DestroyStream(s))
		free, total, err := th.MemInfo()
		if free != 1<<29 || total != 1<<30 || err != nil {
			t.Error(free, total, err)
		}
		return nil
	})
}

func TestThreadErrors(t *testing.T) {
	d := open(t, "-DDEVICES=2")
	dev := device(t, d, 1)
	for _, c := range []struct {
		call string
		f    func(th *Thread) error
		want string
	}{
		{
			"alloc", func(th *Thread) error { _, err := th.Alloc(2 << 30); return err },
			"cuda:1: cuMemAlloc (2147483648 bytes): CUDA_ERROR_OUT_OF_MEMORY (2): out of memory",
		},
		// A code the driver has no name for.
		{
			"launch", func(th *Thread) error { return th.Launch(1, [3]uint32{0, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, nil) },
			"cuda:1: cuLaunchKernel (grid [0 1 1], block [1 1 1], shared 0, parameters 0 bytes): CUDA_ERROR_INVALID_VALUE (1): an argument is out of range",
		},
		{
			"module", func(th *Thread) error { _, err := th.LoadModule([]byte("nonsense")); return err },
			"cuda:1: cuModuleLoadDataEx (ptxas stub, line 1; fatal: no .version): CUDA_ERROR_INVALID_PTX (218): the PTX did not compile",
		},
		{
			"function", func(th *Thread) error { _, err := th.Function(1, "gemm"); return err },
			"cuda:1: cuModuleGetFunction (gemm): CUDA_ERROR_NOT_FOUND (500): not found: a kernel of that name, or a function of this driver",
		},
		{
			"event", func(th *Thread) error { _, err := th.QueryEvent(0); return err },
			"cuda:1: cuEventQuery: CUDA_ERROR_INVALID_HANDLE (400): a handle is not valid, or of another context",
		},
	} {
		err := dev.Run(context.Background(), c.f)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.call, err, c.want)
		}
	}
}

// The driver's context is that of the thread: a call from elsewhere fails.
func TestContextBelongsToTheOwner(t *testing.T) {
	d := open(t, "-DDEVICES=1")
	dev := device(t, d, 0)
	var escaped *Thread
	on(t, dev, func(th *Thread) error { escaped = th; return nil })
	if _, _, err := escaped.MemInfo(); Code(err) != 201 {
		t.Errorf("a call outside the owner: %v", err)
	}
	for range 10 { // and the owner always is on its thread
		on(t, dev, func(th *Thread) error { _, _, err := th.MemInfo(); return err })
	}
}

func TestPostAndRunKeepTheirOrder(t *testing.T) {
	d := open(t, "-DDEVICES=1")
	dev := device(t, d, 0)
	var got []int // of the owner only, until Run returns
	for i := range 1000 {
		if i%100 == 99 {
			on(t, dev, func(*Thread) error { got = append(got, i); return nil })
			continue
		}
		if !dev.Post(func(*Thread) { got = append(got, i) }) {
			t.Fatal("not taken")
		}
	}
	for i, v := range got {
		if i != v {
			t.Fatalf("place %d has %d", i, v)
		}
	}
	if len(got) != 1000 {
		t.Errorf("%d of 1000 done", len(got))
	}
}

func TestManyCallers(t *testing.T) {
	d := open(t, "-DDEVICES=2")
	var n [2]int // each touched by its owner only
	var posted atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		dev := device(t, d, g%2)
		wg.Go(func() {
			for range 50 {
				if err := dev.Run(context.Background(), func(*Thread) error { n[g%2]++; return nil }); err != nil {
					t.Error(err)
				}
				dev.Post(func(*Thread) { posted.Add(1) })
			}
		})
	}
	wg.Wait()
	for i := range n {
		on(t, device(t, d, i), func(*Thread) error { return nil })
		if n[i] != 200 {
			t.Errorf("device %d ran %d", i, n[i])
		}
	}
	if posted.Load() != 400 {
		t.Errorf("%d of 400 posted", posted.Load())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	d := open(t, "-DDEVICES=1")
	dev := device(t, d, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	// The stub stays in this call for two seconds.
	err := dev.Run(ctx, func(th *Thread) error { _, err := th.Query(0x13); return err })
	var late *DeadlineError
	if !errors.As(err, &late) || late.Device != 0 || !late.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	if w := time.Since(start); w > time.Second {
		t.Errorf("waited %v", w)
	}
	// The owner comes back later; nobody is confused by the late answer.
	for range 10 {
		if err := dev.Run(context.Background(), func(*Thread) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

func TestClose(t *testing.T) {
	d := open(t, "-DDEVICES=1")
	dev := device(t, d, 0)
	done := 0
	for range 100 {
		dev.Post(func(*Thread) { done++ })
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if done != 100 {
		t.Errorf("%d of 100 done before the end", done)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if err := dev.Run(context.Background(), func(*Thread) error { return nil }); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "cuda:0") {
		t.Error(err)
	}
	if dev.Post(func(*Thread) {}) {
		t.Error("taken after the end")
	}
	again := device(t, d, 0)
	on(t, again, func(th *Thread) error { _, _, err := th.MemInfo(); return err })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Device(0); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// A call and a launch through the table, with a driver that does nothing.
func BenchmarkLaunch(b *testing.B) {
	inOwner(b, func(th *Thread) {
		params := make([]byte, 96)
		for range b.N {
			if err := th.Launch(0x5000, [3]uint32{7, 1, 1}, [3]uint32{128, 1, 1}, 0, 0x2001, params); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkQuery(b *testing.B) {
	inOwner(b, func(th *Thread) {
		for range b.N {
			if _, err := th.Query(0x2001); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	inOwner(b, func(th *Thread) {
		for range b.N {
			if err := th.Record(0x3001, 0x2001); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCopyToDevice(b *testing.B) {
	inOwner(b, func(th *Thread) {
		p, err := th.Alloc(64)
		if err != nil {
			b.Fatal(err)
		}
		src := make([]byte, 64)
		b.ResetTimer()
		for range b.N {
			if err := th.CopyToDevice(p, src, 0x2001); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// There and back again, from a goroutine to the owner.
func BenchmarkRun(b *testing.B) {
	dev := device(b, open(b, "-DDEVICES=1"), 0)
	b.ReportAllocs()
	f := func(*Thread) error { return nil }
	for b.Loop() {
		if err := dev.Run(context.Background(), f); err != nil {
			b.Fatal(err)
		}
	}
}

func inOwner(b *testing.B, f func(th *Thread)) {
	dev := device(b, open(b, "-DDEVICES=1"), 0)
	b.ReportAllocs()
	on(b, dev, func(th *Thread) error { b.ResetTimer(); f(th); return nil })
}

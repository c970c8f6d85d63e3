//go:build cuda && cgo && linux

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func machine(t testing.TB, preset string, seed uint64, faults ...sim.Fault) *sim.Machine {
	t.Helper()
	return must(sim.New(must(sim.Preset(preset)), sim.Options{Seed: seed, Checks: sim.CheckAll, Faults: faults}))
}

// end is a stream with its operations on one GPU.
type end struct {
	t      testing.TB
	b      *Backend
	stream device.Stream
	ops    *ops
	bufs   []device.Buffer
}

func newEnd(t testing.TB, s *System, i int) *end {
	t.Helper()
	b := must(s.Backend(i))
	e := &end{t: t, b: b, stream: must(b.Device().NewStream())}
	e.ops = must(b.NewOps(e.stream)).(*ops)
	return e
}

func (e *end) bytes(n int) tensor.Tensor {
	buf := must(e.b.Device().Alloc(int64(n)))
	e.bufs = append(e.bufs, buf)
	return tensor.Tensor{Buf: buf, DType: tensor.U8, Shape: tensor.Of(n)}
}

func (e *end) close() {
	e.t.Helper()
	if err := e.stream.Close(); err != nil {
		e.t.Error(err)
	}
	for _, b := range e.bufs {
		if err := b.Free(); err != nil {
			e.t.Error(err)
		}
	}
}

// forgetful is a Stream that leaves out its n-th Record or Wait.
type forgetful struct {
	device.Stream
	n *int
}

func (f forgetful) out() bool { *f.n--; return *f.n == -1 }

func (f forgetful) Record(e device.Event) {
	if !f.out() {
		f.Stream.Record(e)
	}
}

func (f forgetful) Wait(e device.Event) {
	if !f.out() {
		f.Stream.Wait(e)
	}
}

// relay sends four patterns from GPU 0 to GPU 1, which compares them, each
// before it is overwritten. It tells how many bytes were wrong. The drop-th
// Record or Wait is left out.
func relay(t *testing.T, seed uint64, drop int) (bad int64) {
	s := open(t, Options{Machine: machine(t, "2xH100-SXM", seed)})
	a, b := newEnd(t, s, 0), newEnd(t, s, 1)
	defer a.close()
	defer b.close()
	const n = 5000
	from, to := a.bytes(n), b.bytes(n)
	from0, to0 := forgetful{a.stream, &drop}, forgetful{b.stream, &drop}
	sent, read := must(a.b.Device().NewEvent()), must(b.b.Device().NewEvent())
	found := make([]kernels.Comparison, 4)
	b.ops.Fill(to, 99, 0)
	to0.Record(read)
	for i := range found {
		a.ops.Fill(from, uint64(i), 1)
		from0.Wait(read)
		a.stream.(device.PeerStream).CopyTo(to, from)
		from0.Record(sent)
		to0.Wait(sent)
		b.ops.Compare(&found[i], to, uint64(i), 1)
		to0.Record(read)
	}
	for _, e := range []*end{a, b} {
		if err := e.stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []device.Event{sent, read} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, f := range found {
		bad += f.Bad
	}
	return bad
}

// Work of two devices is in the order of their events, and only because of
// them: each one that is left out shows with some seed.
func TestOrderBetweenDevices(t *testing.T) {
	const calls = 17 // of Record and Wait in a relay, the last of which nobody waits for
	for drop := -1; drop < calls-1; drop++ {
		caught := false
		for seed := uint64(0); seed < 24 && !caught; seed++ {
			t.Run(fmt.Sprintf("without %d seed %d", drop, seed), func(t *testing.T) { caught = relay(t, seed, drop) > 0 })
			if drop < 0 && seed == 5 {
				break
			}
		}
		if caught != (drop >= 0) {
			t.Errorf("without call %d: wrong data %v", drop, caught)
		}
	}
}

func TestStaging(t *testing.T) {
	s := open(t, Options{})
	e := newEnd(t, s, 0)
	defer e.close()
	for _, n := range []int{1, halfBytes - 1, halfBytes + 1, 3*halfBytes + 77} {
		x, y := e.bytes(n), e.bytes(n)
		src, dst := make([]byte, n), make([]byte, n)
		for i := range src {
			src[i] = byte(i*7 + i>>11)
		}
		want := slices.Clone(src)
		e.stream.Upload(x, src)
		clear(src) // it was read before the call returned
		e.ops.Copy(y, x)
		var sum, part kernels.Digest
		e.ops.Digest(&sum, y)
		e.stream.Download(dst, y)
		e.ops.Digest(&part, y.Rows(n/2, n))
		if err := e.stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, want) || sum != kernels.DigestOf(want) || part != kernels.DigestOf(want[n/2:]) {
			t.Fatalf("%d bytes came back changed", n)
		}
	}
	// Pinned memory is copied as it is, in one piece.
	const n = 2*halfBytes + 5
	h := must(e.b.Device().(device.HostAllocator).AllocHost(2 * n))
	src, dst := h.Bytes()[:n], h.Bytes()[n:]
	copy(src, threes(n))
	x := e.bytes(n)
	before := s.Machine().Stats()
	e.stream.Upload(x, src)
	e.stream.Download(dst, x)
	if err := e.stream.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, _ := work(s.Machine(), before); d.Copies != 2 || !bytes.Equal(src, dst) {
		t.Errorf("%d copies of pinned memory, equal %v", d.Copies, bytes.Equal(src, dst))
	}
	if err := h.Free(); err != nil {
		t.Error(err)
	}
	// More results than there is room for.
	want := threes(n)
	sums := make([]kernels.Digest, maxResults+10)
	for i := range sums {
		e.ops.Digest(&sums[i], x.Rows(i, i+100))
	}
	if err := e.stream.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		if sums[i] != kernels.DigestOf(want[i:i+100]) {
			t.Fatalf("digest %d is wrong", i)
		}
	}
}

func threes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 3)
	}
	return b
}

// fails wants an error of a kind whose text has all of parts.
func fails(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v, want %v", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%v: does not say %q", err, p)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Run("limit", func(t *testing.T) {
		s := open(t, Options{MemoryLimit: map[int]int64{0: 1 << 20}})
		d := must(s.Backend(0)).Device()
		if free := d.Info().FreeBytes; free != 1<<20 {
			t.Errorf("%d bytes are free", free)
		}
		a := must(d.Alloc(1000))
		_, err := d.Alloc(1<<20 - 1023)
		fails(t, err, device.ErrOutOfMemory, "cuda:0", "1047553", "1047552")
		b := must(d.Alloc(1<<20 - 1024))
		if err := errors.Join(a.Free(), b.Free()); err != nil || d.Info().FreeBytes != 1<<20 {
			t.Errorf("%v, %d bytes are free", err, d.Info().FreeBytes)
		}
	})
	t.Run("driver", func(t *testing.T) {
		s := open(t, Options{Machine: machine(t, "RTX-4090", 0, sim.Fault{Kind: sim.NoMemory, Device: 0, Times: 1})})
		d := must(s.Backend(0)).Device()
		_, err := d.Alloc(4096)
		fails(t, err, device.ErrOutOfMemory, "cuda:0", "4096 bytes", "CUDA_ERROR_OUT_OF_MEMORY")
		if b, err := d.Alloc(4096); err != nil || b.Free() != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

func TestDeviceLost(t *testing.T) {
	s := open(t, Options{Machine: machine(t, "2xH100-SXM", 0, sim.Fault{Kind: sim.Lost, Device: 0, After: 3})})
	a, b := newEnd(t, s, 0), newEnd(t, s, 1)
	x, y := a.bytes(4096), b.bytes(4096)
	e := must(a.b.Device().NewEvent())
	for i := range 6 {
		a.ops.Fill(x, uint64(i), 1)
	}
	a.stream.Record(e)
	b.ops.Fill(y, 1, 1)
	if err := b.stream.Sync(t.Context()); err != nil {
		t.Errorf("the other device: %v", err)
	}
	err := a.stream.Sync(t.Context())
	fails(t, err, device.ErrDeviceLost, "cuda:0", "Fill", "CUDA_ERROR")
	if again := a.stream.Sync(t.Context()); again == nil || a.stream.Err() == nil {
		t.Error("the error does not stick")
	}
	if _, err := a.b.Device().Alloc(10); !errors.Is(err, device.ErrDeviceLost) {
		t.Errorf("allocate on a lost device: %v", err)
	}
	// Who waits for it does not wait for ever, and hears why.
	b.stream.Wait(e)
	b.ops.Fill(y, 2, 1)
	fails(t, b.stream.Sync(t.Context()), device.ErrDeviceLost, "cuda:1", "Wait", "event of cuda:0")
	a.close()
	b.close()
}

func TestDeadline(t *testing.T) {
	m := machine(t, "2xH100-SXM", 0, sim.Fault{Kind: sim.Hang, From: sim.Host, To: 0, MinBytes: 100})
	s := open(t, Options{Machine: m})
	a := newEnd(t, s, 0)
	x := a.bytes(4096)
	a.stream.Upload(x, make([]byte, 4096))
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := a.stream.Sync(ctx)
	fails(t, err, device.ErrDeviceLost, "cuda:0", "Upload", "not done after", "the limit was 1")
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	a.close()
	b := newEnd(t, s, 1) // not concerned
	b.ops.Fill(b.bytes(100), 1, 1)
	if err := b.stream.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	b.close()
	if err := m.Close(); err != nil { // ends what hangs
		t.Error(err)
	}
}

// After a wait that was given up, the owner may still have its turn before it:
// nothing else is handed to it, and nobody waits for it.
func TestCalledOff(t *testing.T) {
	s := open(t, Options{})
	e := newEnd(t, s, 0)
	x := e.bytes(3 * halfBytes)
	e.ops.Fill(x, 1, 1)
	busy := make(chan struct{})
	e.b.dev.owner.Post(func(*driver.Thread) { <-busy })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	fails(t, e.stream.Sync(ctx), context.Canceled, "cuda:0", "Fill")
	done := make(chan error, 1)
	go func() {
		e.stream.Upload(x, make([]byte, 3*halfBytes)) // more than staging holds
		done <- e.stream.Sync(t.Context())
	}()
	late := time.AfterFunc(20*time.Second, func() {
		t.Error("it waits for the owner")
		close(busy)
	})
	fails(t, <-done, context.Canceled)
	if late.Stop() {
		close(busy)
	}
	e.close()
	again := newEnd(t, s, 0) // the device itself is well
	defer again.close()
	again.ops.Fill(again.bytes(100), 1, 1)
	if err := again.stream.Sync(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a kernel does wrong names the operation; exactly, where each is waited
// for.
func TestIllegalAddress(t *testing.T) {
	for _, synchronous := range []bool{false, true} {
		t.Run(fmt.Sprint("synchronous ", synchronous), func(t *testing.T) {
			s := open(t, Options{Machine: machine(t, "RTX-4090", 0), Synchronous: synchronous})
			a := newEnd(t, s, 0)
			x, y := a.bytes(64), a.bytes(64)
			x.Shape, y.Shape = tensor.Of(4, 16), tensor.Of(1, 16)
			a.ops.Fill(x, 1, 1)
			a.ops.Begin(&kernels.Batch{Logits: []int32{1 << 28}})
			a.ops.Layer(7)
			a.ops.GatherRows(y, x)
			a.ops.Copy(y, y)
			err := a.stream.Sync(t.Context())
			want := []string{"cuda:0", "CUDA_ERROR_ILLEGAL_ADDRESS"}
			if synchronous {
				want = append(want, "GatherRows (kernel gather) of layer 7")
			}
			fails(t, err, device.ErrDeviceLost, want...)
			a.close()
		})
	}
}

// Weights take what the layout says, on the device and off it.
func TestWeightBytes(t *testing.T) {
	s := open(t, Options{})
	e := newEnd(t, s, 0)
	defer e.close()
	var got kernels.Digest
	e.ops.Digest(&got, e.bytes(1)) // from now on there is memory for results
	for f := kernels.AsStored; int(f) < numFormats; f++ {
		for _, size := range [][2]int{{1, 1}, {17, 33}, {64, 128}, {100, 700}} {
			for _, d := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32} {
				m := &memMatrix{d, size[0], size[1], make([]byte, size[0]*size[1]*d.Bits()/8)}
				before := e.b.dev.used.Load()
				w := must(e.b.Pack(e.stream, m, f))
				n := must(e.b.Layout().WeightBytes(size[0], size[1], d, f))
				if took := e.b.dev.used.Load() - before; took != n || w.Bytes() != n {
					t.Errorf("%v %v %v: %d bytes taken, %d said by the weight, %d by the layout", size, d, f, took, w.Bytes(), n)
				}
				v := w.(kernels.VerifiableWeight)
				e.ops.Digest(&got, v.Memory())
				if err := e.stream.Sync(t.Context()); err != nil || got != v.Sent() {
					t.Errorf("%v %v %v: digest %x on the device, %x was sent; %v", size, d, f, got, v.Sent(), err)
				}
				if err := w.Free(); err != nil || e.b.dev.used.Load() != before {
					t.Errorf("free: %v, %d bytes are still there", err, e.b.dev.used.Load()-before)
				}
			}
		}
	}
}

// The operations never take more than the planner is told.
func TestOpsBytes(t *testing.T) {
	for _, p := range []Precision{Auto, F32} {
		t.Run(string(p), func(t *testing.T) {
			s := open(t, Options{Precision: p})
			b := must(s.Backend(0))
			h := kernels.Heads{Q: 6, KV: 2, Dim: 32}
			limits := kernels.OpsLimits{Tokens: 20, Seqs: 4, Context: 700, Logits: 4, Heads: h}
			most := b.Layout().OpsBytes(limits)
			for _, rows := range [][]int{{20}, {1, 1, 1, 1}, {1, 11, 1, 7}, {1}, {3, 17}} {
				e := newEnd(t, s, 0)
				before := b.dev.used.Load()
				shape := tensor.Of(4*44, h.KV, kernels.BlockSize, h.Dim)
				page := func() tensor.Tensor {
					x := e.bytes(shape.Elems() * b.kv.Bits() / 8)
					x.DType, x.Shape = b.kv, shape
					return x
				}
				act := func(cols int) tensor.Tensor {
					n := 0
					for _, r := range rows {
						n += r
					}
					x := e.bytes(n * cols * b.act.Bits() / 8)
					x.DType, x.Shape = b.act, tensor.Of(n, cols)
					return x
				}
				a := kernels.AttentionArgs{Dst: act(h.Q * h.Dim), QKV: act(h.Cols()), Heads: h, KV: kernels.KVLayer{K: page(), V: page()}, Scale: 1}
				e.ops.Fill(a.KV.K, 0, 0)
				e.ops.Fill(a.KV.V, 0, 0)
				e.ops.Fill(a.QKV, 0, 0)
				batch := &kernels.Batch{Starts: []int32{0}}
				for i, n := range rows {
					var table []int32
					for j := range 44 {
						table = append(table, int32(44*i+j))
					}
					for r := range n {
						batch.Tokens = append(batch.Tokens, 0)
						batch.Positions = append(batch.Positions, int32(700-n+r))
						batch.Slots = append(batch.Slots, 0)
					}
					batch.Starts = append(batch.Starts, int32(len(batch.Tokens)))
					batch.Contexts = append(batch.Contexts, 700)
					batch.BlockTables = append(batch.BlockTables, table)
				}
				var sum kernels.Digest
				e.ops.Begin(batch)
				e.ops.Attention(a)
				e.ops.Digest(&sum, a.Dst)
				if err := e.stream.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				var own int64
				for _, x := range e.bufs {
					own += x.(*buffer).taken
				}
				if took := b.dev.used.Load() - before - own; took > most || took == 0 {
					t.Errorf("rows %v: %d bytes, the layout says at most %d", rows, took, most)
				}
				e.close()
			}
		})
	}
}

// A GPU that no kernel runs on is refused by name, others of its machine not.
func TestTooOld(t *testing.T) {
	s := open(t, Options{Simulate: "T4+RTX-4090"})
	_, err := s.Backend(0)
	fails(t, err, device.ErrNotSupported, "cuda:0", "T4", "7.5")
	if _, err := s.Backend(1); err != nil {
		t.Error(err)
	}
	if _, err := s.Backend(2); err == nil || !strings.Contains(err.Error(), "2 GPUs") {
		t.Errorf("a GPU that is not there: %v", err)
	}
}

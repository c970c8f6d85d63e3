package kerneltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func embed(t *testing.T, open Opener) {
	p := open2(t, open)
	for _, d := range weightTypes {
		for _, k := range []int{1, 7, 64, 577} {
			w := p.pack(d, kernels.AsStored, 51, k, p.random(51*k, 1))
			b := &kernels.Batch{Tokens: []int32{0, 50, 17, 17, 15, 16, 49}}
			p.begin(b)
			y := p.act(tensor.Of(len(b.Tokens), k), nil)
			p.dev.ops.Embed(y.dev, w.dev)
			p.ref.ops.Embed(y.ref, w.ref)
			p.same(fmt.Sprintf("%v K=%d", d, k), y, func(int) float64 { return -1 * ulp(y.dev.DType) }) // exact
		}
	}
}

func rmsNorm(t *testing.T, open Opener) {
	p := open2(t, open)
	for _, h := range []int{1, 2, 7, 8, 9, 31, 40, 64, 100, 576, 1023, 4096} {
		for _, m := range []int{1, 2, 5, 70} {
			for _, scale := range []float64{1e-4, 1, 1e4} {
				if p.skip() {
					continue
				}
				x := p.act(tensor.Of(m, h), p.random(m*h, scale))
				w := p.f32(tensor.Of(h), p.random(h, 1))
				y := p.act(tensor.Of(m, h), nil)
				p.dev.ops.RMSNorm(y.dev, x.dev, w.dev, 1e-5)
				p.ref.ops.RMSNorm(y.ref, x.ref, w.ref, 1e-5)
				what := fmt.Sprintf("H=%d rows=%d scale=%g", h, m, scale)
				// The sum's rounding is shared by the row; then three more.
				want := p.ref.floats(y.ref)
				bound := func(i int) float64 { return (8 + math.Sqrt(float64(h))) * epsilon * math.Abs(float64(want[i])) }
				p.same(what, y, bound)
				p.dev.ops.RMSNorm(x.dev, x.dev, w.dev, 1e-5) // in place
				if !bytes.Equal(p.dev.bytes(x.dev), p.dev.bytes(y.dev)) {
					t.Errorf("%s: in place gives something else", what)
				}
			}
		}
	}
}

func gatedAct(t *testing.T, open Opener) {
	p := open2(t, open)
	for act := kernels.SiLU; act <= kernels.GELUTanh; act++ {
		for _, n := range []int{1, 7, 8, 33, 1536} {
			for _, m := range []int{1, 3, 40} {
				if p.skip() {
					continue
				}
				v := p.random(m*2*n, 4)
				for i := range v { // the whole range of the exponential
					if i%2 == 0 {
						v[i] = float32((p.rng.Float64() - 0.5) * 240)
					}
				}
				if n > 7 {
					v[1], v[2], v[3], v[n+2] = 0, float32(math.Copysign(0, -1)), float32(math.NaN()), 5
				}
				g := p.act(tensor.Of(m, 2*n), v)
				y := p.act(tensor.Of(m, n), nil)
				p.dev.ops.GatedAct(y.dev, g.dev, act)
				p.ref.ops.GatedAct(y.ref, g.ref, act)
				want, in := p.ref.floats(y.ref), p.ref.floats(g.ref)
				p.same(fmt.Sprintf("act %d, %d×%d", act, m, n), y, func(i int) float64 {
					// Relative, but for the far negative tail, where the result
					// is as good as 0. The argument's rounding shows in e^x.
					x := min(0, float64(in[i/n*2*n+i%n]))
					return (8-4*x-x*x*x/2)*epsilon*math.Abs(float64(want[i])) + 1e-32
				})
			}
		}
	}
}

func argmax(t *testing.T, open Opener) {
	p := open2(t, open)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, n := range []int{1, 2, 7, 8, 15, 33, 320, 49152} {
		const m = 10
		v := p.random(m*n, 1)
		at := func(row, i int, x float32) { v[row*n+i%n] = x }
		at(0, n-1, 100)
		at(1, 0, 100)
		at(2, n/2, 100) // the first of equals
		at(2, n-1, 100)
		for i := range n {
			at(3, i, -inf)
			at(4, i, nan)
			at(5, i, -5)
			at(6, i, nan)
		}
		at(6, n/3, -7)
		at(7, n/2, nan)
		at(8, n/4, inf)
		at(9, n/4, 100) // −1 is also what memory that nobody wrote may hold
		l := p.f32(tensor.Of(m, n), v)
		y := both{p.dev.tensor(tensor.I32, tensor.Of(m)), p.ref.tensor(tensor.I32, tensor.Of(m))}
		p.dev.ops.Argmax(y.dev, l.dev)
		p.ref.ops.Argmax(y.ref, l.ref)
		if got, want := p.dev.bytes(y.dev), p.ref.bytes(y.ref); !bytes.Equal(got, want) {
			t.Errorf("V=%d: %x, want %x", n, got, want)
		}
		if got := binary.LittleEndian.Uint32(p.dev.bytes(y.dev)); got != uint32(n-1) {
			t.Errorf("V=%d: %d, want the last", n, got)
		}
	}
}

// move is GatherRows and Copy.
func move(t *testing.T, open Opener) {
	p := open2(t, open)
	for _, h := range []int{1, 16, 577} {
		src := p.act(tensor.Of(20, h), p.random(20*h, 1))
		b := &kernels.Batch{Logits: []int32{0, 3, 4, 19}}
		p.begin(b)
		y := p.act(tensor.Of(4, h), nil)
		p.dev.ops.GatherRows(y.dev, src.dev)
		p.ref.ops.GatherRows(y.ref, src.ref)
		if !bytes.Equal(p.dev.bytes(y.dev), p.ref.bytes(y.ref)) {
			t.Errorf("GatherRows of %d columns differs", h)
		}
		z := p.act(tensor.Of(7, h), nil)
		p.dev.ops.Copy(z.dev, src.dev.Rows(11, 18))
		n := len(p.dev.bytes(z.dev))
		if !bytes.Equal(p.dev.bytes(z.dev), p.dev.bytes(src.dev)[11*n/7:][:n]) {
			t.Errorf("Copy of %d columns differs", h)
		}
	}
}

func digest(t *testing.T, open Opener) {
	p := open2(t, open)
	for _, n := range []int{1, 7, 8, 9, 64, 1000, 65535, 65536, 65537, 300_001} {
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(p.rng.Uint32())
		}
		x := p.dev.tensor(tensor.U8, tensor.Of(n))
		p.dev.s.Upload(x, raw)
		var d, part kernels.Digest
		p.dev.ops.Digest(&d, x)
		p.dev.ops.Digest(&part, x.Rows(n/3, n))
		p.dev.sync()
		if want := kernels.DigestOf(raw); d != want {
			t.Errorf("%d bytes: %x, want %x", n, d, want)
		}
		if want := kernels.DigestOf(raw[n/3:]); part != want {
			t.Errorf("%d bytes from offset %d: %x, want %x", n-n/3, n/3, part, want)
		}
	}
}

func memory(t *testing.T, open Opener) {
	b := open(t)
	d := b.Device()
	info := d.Info()
	if info.ID.Kind == "" || info.Name == "" || info.Units < 1 {
		t.Errorf("Info says too little: %+v", info)
	}
	for _, n := range []int64{1 << 60, math.MaxInt64} {
		if _, err := d.Alloc(n); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("allocated %d bytes: %v, want ErrOutOfMemory", n, err)
		}
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("allocated −1 bytes")
	}
	buf, err := d.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if buf.Size() != 1<<20 || buf.Device() != info.ID {
		t.Errorf("a buffer of %d bytes on %v", buf.Size(), buf.Device())
	}
	if got := d.Info().FreeBytes; info.FreeBytes > 0 && got > info.FreeBytes {
		t.Errorf("free bytes went from %d to %d by allocating", info.FreeBytes, got)
	}
	if err := buf.Free(); err != nil {
		t.Error(err)
	}
}

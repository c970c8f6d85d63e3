package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// faulty is a Stream whose copies report success but may harm what arrives,
// or whose Sync fails.
type faulty struct {
	device.Stream
	harm   func([]byte) // of uploaded bytes
	harmed func([]byte) // of downloaded bytes
	syncs  error
}

func (f *faulty) Upload(dst tensor.Tensor, src []byte) {
	if f.harm != nil {
		src = bytes.Clone(src)
		f.harm(src)
	}
	f.Stream.Upload(dst, src)
}

func (f *faulty) Download(dst []byte, src tensor.Tensor) {
	f.Stream.Download(dst, src)
	if f.harmed != nil {
		f.harmed(dst)
	}
}

func (f *faulty) Sync(ctx context.Context) error {
	if f.syncs != nil {
		return f.syncs
	}
	return f.Stream.Sync(ctx)
}

type side struct {
	End
	faulty *faulty
}

func open(t *testing.T, index, n int) side {
	t.Helper()
	b := ref.Open()
	s, err := b.Device().NewStream()
	if err != nil {
		t.Fatal(err)
	}
	ops, err := b.NewOps(s)
	if err != nil {
		t.Fatal(err)
	}
	buf, err := b.Device().Alloc(int64(4 * n))
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Stream: s}
	e := End{Device: device.ID{Kind: device.CPU, Index: index}, Stream: f, Ops: ops, Tensor: tensor.Tensor{Buf: buf, DType: tensor.F32, Shape: tensor.Of(n)}}
	return side{e, f}
}

func (s side) fill(seed uint64) []byte {
	data := make([]byte, s.Tensor.Bytes())
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	s.faulty.Stream.Upload(s.Tensor, data)
	return data
}

func (s side) read() []byte {
	data := make([]byte, s.Tensor.Bytes())
	s.faulty.Stream.Download(data, s.Tensor)
	return data
}

// move is what a caller does: the proof that the source is written, then the copy.
func move(c Copier, dst, src End) (err error) {
	ctx := context.Background()
	if src.Ready, err = c.Ready(ctx, src); err != nil {
		return err
	}
	return c.Move(ctx, dst, src)
}

func TestMoveAndCommit(t *testing.T) {
	c := New(Options{})
	for step := range uint64(20) {
		// A chain of three, sizes changing from step to step.
		n := 1 + int(step*37%101)
		a, b, d := open(t, 0, n), open(t, 1, n), open(t, 2, n)
		want := a.fill(step)
		if err := errors.Join(move(c, b.End, a.End), move(c, d.End, b.End), c.Commit(step)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.read(), want) {
			t.Fatalf("step %d: other bytes arrived, and nobody noticed", step)
		}
	}
}

// What can go wrong with the bytes is found, whichever half of the way harms
// them, and the error names the hop.
func TestHarmIsFound(t *testing.T) {
	faults := map[string]func([]byte){
		"zeros":   func(p []byte) { clear(p) },
		"one bit": func(p []byte) { p[len(p)/2] ^= 0x10 },
		"partial": func(p []byte) { clear(p[len(p)/2:]) },
		"shifted": func(p []byte) { copy(p[4:], bytes.Clone(p)) },
		"swapped": func(p []byte) { p[0], p[8] = p[8], p[0] },
	}
	for name, harm := range faults {
		for _, half := range []string{"download", "upload"} {
			t.Run(name+"/"+half, func(t *testing.T) {
				c := New(Options{})
				a, b, d := open(t, 0, 100), open(t, 1, 100), open(t, 2, 100)
				a.fill(1)
				if half == "upload" {
					d.faulty.harm = harm
				} else {
					b.faulty.harmed = harm
				}
				if err := errors.Join(move(c, b.End, a.End), move(c, d.End, b.End)); err != nil {
					t.Fatal(err)
				}
				var m *MismatchError
				if err := c.Commit(7); !errors.As(err, &m) {
					t.Fatalf("Commit: %v", err)
				}
				if m.From != b.Device || m.To != d.Device || m.Bytes != 400 || m.Step != 7 || m.Sent == m.Got {
					t.Fatalf("%+v", m)
				}
				for _, part := range []string{"step 7", "400 bytes", "cpu:1", "cpu:2", "host staged"} {
					if !strings.Contains(m.Error(), part) {
						t.Errorf("%q does not say %q", m, part)
					}
				}
				if m.Suspect != nil {
					t.Errorf("suspects %v at once", *m.Suspect)
				}
				// Once more: now it looks where the bytes go wrong.
				if err := move(c, d.End, b.End); err != nil {
					t.Fatal(err)
				}
				suspect := map[string]device.ID{"download": b.Device, "upload": d.Device}[half]
				if err := c.Commit(8); !errors.As(err, &m) || m.Suspect == nil || *m.Suspect != suspect || !strings.Contains(err.Error(), "between "+suspect.String()+" and host") {
					t.Fatalf("the second time: %v", err)
				}
				if err := c.Commit(9); err != nil {
					t.Fatalf("the next step inherits the fault: %v", err)
				}
			})
		}
	}
}

// However few steps are verified, the one that is computed again is.
func TestReplayIsVerified(t *testing.T) {
	v, err := ParseVerify("sampled:2")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Verify: v})
	a, b := open(t, 0, 100), open(t, 1, 100)
	a.fill(1)
	b.faulty.harm = func(p []byte) { p[5] ^= 1 }
	found := ""
	for step := range uint64(6) { // the odd ones are sampled
		if err := move(c, b.End, a.End); err != nil {
			t.Fatal(err)
		}
		found += map[bool]string{true: "x", false: "-"}[c.Commit(step) != nil]
		if step == 3 {
			b.faulty.harm = nil
		}
	}
	if found != "-xxx--" {
		t.Errorf("found in %s, want -xxx--: all after the first", found)
	}
}

func TestSourceFails(t *testing.T) {
	a, b := open(t, 0, 10), open(t, 1, 10)
	a.faulty.syncs = fmt.Errorf("sync: %w", device.ErrDeviceLost)
	c := New(Options{})
	err := move(c, b.End, a.End)
	if !errors.Is(err, device.ErrDeviceLost) || !strings.Contains(err.Error(), "cpu to write 40 bytes") {
		t.Fatalf("%v", err)
	}
}

func TestMoveDoesNotAllocate(t *testing.T) {
	a, b := open(t, 0, 1000), open(t, 1, 1000)
	c := New(Options{})
	step := func() {
		if err := errors.Join(move(c, b.End, a.End), c.Commit(1)); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Fatalf("%g allocations a copy", n)
	}
}

// A source in host memory is copied only with the proof that it was written in
// this step.
func TestNotReady(t *testing.T) {
	a, b, other := open(t, 0, 10), open(t, 1, 10), open(t, 0, 10)
	c := New(Options{})
	if err := c.Move(t.Context(), b.End, a.End); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "40 bytes from cpu to cpu:1") {
		t.Errorf("without proof: %v", err)
	}
	proof, err := c.Ready(t.Context(), a.End)
	if err != nil {
		t.Fatal(err)
	}
	wrong := other.End
	wrong.Ready = proof
	if err := c.Move(t.Context(), b.End, wrong); !errors.Is(err, ErrNotReady) {
		t.Errorf("with another's proof: %v", err)
	}
	a.Ready = proof
	if err := c.Move(t.Context(), b.End, a.End); err != nil {
		t.Error(err)
	}
	if err := c.Commit(1); err != nil {
		t.Errorf("copies that were refused count: %v", err)
	}
	if err := c.Move(t.Context(), b.End, a.End); !errors.Is(err, ErrNotReady) {
		t.Errorf("with the proof of the step before: %v", err)
	}
}

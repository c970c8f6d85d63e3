package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// bench measures operations of one backend.
type bench struct {
	ctx   context.Context
	b     kernels.Backend
	s     device.Stream
	ops   kernels.Ops
	small bool // on a simulated machine
	free  []func() error
}

func newBench(ctx context.Context, b kernels.Backend, small bool) (*bench, error) {
	s, err := b.Device().NewStream()
	if err != nil {
		return nil, err
	}
	ops, err := b.NewOps(s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &bench{ctx: ctx, b: b, s: s, ops: ops, small: small}, nil
}

// size is n, or little on a simulated machine.
func (m *bench) size(n, little int) int {
	if m.small {
		return little
	}
	return n
}

// release frees what was allocated since the last release.
func (m *bench) release() error {
	errs := []error{m.s.Sync(m.ctx)}
	for i := len(m.free) - 1; i >= 0; i-- {
		errs = append(errs, m.free[i]())
	}
	m.free = nil
	return errors.Join(errs...)
}

func (m *bench) close() error { return errors.Join(m.release(), m.s.Close()) }

// tensor is filled with small random numbers, if it is of floats.
func (m *bench) tensor(d tensor.DType, dims ...int) (tensor.Tensor, error) {
	t := tensor.Tensor{DType: d, Shape: tensor.Of(dims...)}
	buf, err := m.b.Device().Alloc(t.Bytes())
	if err != nil {
		return t, err
	}
	t.Buf = buf
	m.free = append(m.free, buf.Free)
	const piece = 64 << 20
	host := make([]byte, min(t.Bytes(), piece))
	if d == tensor.BF16 || d == tensor.F32 {
		// Read as f32, the low half of a value hardly counts.
		readNoise(host, 0)
	}
	for off := int64(0); off < t.Bytes(); off += piece {
		n := min(t.Bytes()-off, piece)
		part := tensor.Tensor{Buf: buf, Offset: off, DType: tensor.U8, Shape: tensor.Of(int(n))}
		m.s.Upload(part, host[:n])
		if err := m.s.Sync(m.ctx); err != nil {
			return t, err
		}
	}
	return t, nil
}

// time is how long one call takes: the least of three rounds of so many that a
// round takes long enough to be measured.
func (m *bench) time(call func(i int)) (time.Duration, error) {
	once := func(n int) (time.Duration, error) {
		start := time.Now()
		for i := range n {
			call(i)
		}
		err := m.s.Sync(m.ctx)
		return time.Since(start), err
	}
	if m.small {
		d, err := once(1)
		return d, err
	}
	if _, err := once(2); err != nil { // loads modules
		return 0, err
	}
	n := 4
	for n < 1<<16 {
		d, err := once(n)
		if err != nil {
			return 0, err
		}
		if d > 20*time.Millisecond {
			break
		}
		n *= 2
	}
	best := time.Duration(1 << 62)
	for range 3 {
		d, err := once(n)
		if err != nil {
			return 0, err
		}
		best = min(best, d/time.Duration(n))
	}
	return max(best, 1), nil
}

// kernel measures one operation that moves so many bytes and computes so many
// products.
func (m *bench) kernel(name string, bytes int64, flops float64, call func(i int)) (Kernel, error) {
	d, err := m.time(call)
	if err != nil {
		return Kernel{}, fmt.Errorf("%s: %w", name, err)
	}
	return Kernel{
		Name: name, Bytes: bytes, US: float64(d.Nanoseconds()) / 1e3,
		GBps: float64(bytes) / d.Seconds() / 1e9, TFLOPs: flops / d.Seconds() / 1e12,
	}, nil
}

// copyRate is the measure of all others: a copy within the device.
func (m *bench) copyRate() (Kernel, error) {
	n := m.size(512<<20, 1<<16)
	a, err := m.tensor(tensor.U8, n)
	if err != nil {
		return Kernel{}, err
	}
	b, err := m.tensor(tensor.U8, n)
	if err != nil {
		return Kernel{}, err
	}
	return m.kernel("copy", 2*int64(n), 0, func(int) { m.ops.Copy(b, a) })
}

// rows measures the operations on rows of activations, and the digest.
func (m *bench) rows() (all []Kernel, err error) {
	add := func(k Kernel, kerr error) {
		if kerr == nil {
			all = append(all, k)
		}
		err = errors.Join(err, kerr)
	}
	t, h := m.size(4096, 8), m.size(4096, 64)
	act := int64(m.b.ActType().Bits() / 8)
	x, e1 := m.tensor(m.b.ActType(), t, 2*h)
	y, e2 := m.tensor(m.b.ActType(), t, h)
	w, e3 := m.tensor(tensor.F32, h)
	logits, e4 := m.tensor(tensor.F32, m.size(64, 2), m.size(128256, 256))
	best, e5 := m.tensor(tensor.I32, m.size(64, 2))
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
		return nil, err
	}
	half := tensor.Tensor{Buf: x.Buf, DType: x.DType, Shape: y.Shape}
	add(m.kernel("rmsnorm", 2*act*int64(t)*int64(h), 0, func(int) { m.ops.RMSNorm(y, half, w, 1e-5) }))
	add(m.kernel("gate", 3*act*int64(t)*int64(h), 0, func(int) { m.ops.GatedAct(y, x, kernels.SiLU) }))
	add(m.kernel("argmax", logits.Bytes(), 0, func(int) { m.ops.Argmax(best, logits) }))
	var digest kernels.Digest
	add(m.kernel(fmt.Sprintf("digest %d KiB", x.Bytes()>>10), x.Bytes(), 0, func(int) { m.ops.Digest(&digest, x) }))
	one := tensor.Tensor{Buf: x.Buf, DType: x.DType, Shape: tensor.Of(1, h)}
	add(m.kernel("digest of one row", one.Bytes(), 0, func(int) { m.ops.Digest(&digest, one) }))
	return all, err
}

// tokens measures what is done for each token beside the products: its row of
// the embedding, its rotation and its K/V, and the probe's patterns.
func (m *bench) tokens() (all []Kernel, err error) {
	add := func(k Kernel, kerr error) {
		if kerr == nil {
			all = append(all, k)
		}
		err = errors.Join(err, kerr)
	}
	t, hidden := m.size(512, 4), m.size(4096, 64)
	h := kernels.Heads{Q: m.size(32, 4), KV: m.size(8, 2), Dim: m.size(128, 64)}
	act, kv := int64(m.b.ActType().Bits()/8), int64(m.b.KVType().Bits()/8)
	table, err := m.b.Pack(m.s, matrix{m.size(32768, 64), hidden}, kernels.AsStored)
	if err != nil {
		return nil, err
	}
	m.free = append(m.free, table.Free)
	x, e1 := m.tensor(m.b.ActType(), t, hidden)
	qkv, e2 := m.tensor(m.b.ActType(), t, h.Cols())
	cos, e3 := m.tensor(tensor.F32, kernels.BlockSize, h.Dim/2)
	sin, e4 := m.tensor(tensor.F32, kernels.BlockSize, h.Dim/2)
	k, e5 := m.tensor(m.b.KVType(), t, h.KV, kernels.BlockSize, h.Dim)
	v, e6 := m.tensor(m.b.KVType(), t, h.KV, kernels.BlockSize, h.Dim)
	if err := errors.Join(e1, e2, e3, e4, e5, e6); err != nil {
		return nil, err
	}
	m.ops.Begin(decodeBatch(t, kernels.BlockSize, 1))
	row := table.Bytes() / int64(table.Rows())
	add(m.kernel(fmt.Sprintf("embed, %d rows", t), int64(t)*(row+act*int64(hidden)), 0, func(int) { m.ops.Embed(x, table) }))
	heads := int64(t) * int64(h.Dim)
	add(m.kernel(fmt.Sprintf("rotary and K/V, %d rows", t), heads*(2*act*int64(h.Q+h.KV)+act*int64(h.KV)+2*kv*int64(h.KV)), 0,
		func(int) {
			m.ops.Rotary(kernels.RotaryArgs{QKV: qkv, Heads: h, Cos: cos, Sin: sin, KV: kernels.KVLayer{K: k, V: v}})
		}))
	if p, ok := m.ops.(kernels.Prober); ok {
		var c kernels.Comparison
		add(m.kernel("fill", k.Bytes(), 0, func(int) { p.Fill(k, 1, 1) }))
		add(m.kernel("compare", k.Bytes(), 0, func(int) { p.Compare(&c, k, 1, 1) }))
		if err == nil && c.Bad != 0 {
			err = fmt.Errorf("compare: %d bytes of what fill wrote are other ones, the first at %d", c.Bad, c.First)
		}
	}
	return all, err
}

// products measures the matrix products of an 8B model: few rows are bound by
// the weights' bytes, many by arithmetic.
func (m *bench) products(f kernels.Format) (all []Kernel, err error) {
	sizes := [][2]int{{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}
	ms := []int{1, 2, 4, 8, 16, 64, 512}
	if m.small {
		sizes, ms = [][2]int{{64, 64}}, []int{1, 16}
	}
	for _, size := range sizes {
		n, k := size[0], size[1]
		// As many weights as no cache holds together.
		var ws []kernels.Weight
		for total := int64(0); len(ws) == 0 || total < int64(m.size(768<<20, 1)); {
			w, err := m.b.Pack(m.s, matrix{n, k}, f)
			if err != nil {
				return nil, err
			}
			m.free = append(m.free, w.Free)
			ws, total = append(ws, w), total+w.Bytes()
		}
		for _, rows := range ms {
			x, e1 := m.tensor(m.b.ActType(), rows, k)
			y, e2 := m.tensor(m.b.ActType(), rows, n)
			if err := errors.Join(e1, e2); err != nil {
				return nil, err
			}
			act := int64(m.b.ActType().Bits() / 8)
			k, err := m.kernel(fmt.Sprintf("matmul %v %d×%d, %d rows", ws[0].Format(), n, k, rows),
				ws[0].Bytes()+act*int64(rows)*int64(n+k), 2*float64(rows)*float64(n)*float64(k),
				func(i int) { m.ops.MatMul(kernels.MatMulArgs{Dst: y, X: x, W: ws[i%len(ws)]}) })
			if err != nil {
				return nil, err
			}
			all = append(all, k)
		}
		if err := m.release(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// attention measures decoding of some sequences with a long context each.
func (m *bench) attention() (all []Kernel, err error) {
	h := kernels.Heads{Q: 32, KV: 8, Dim: 128}
	contexts, counts := []int{512, 4096, 8192}, []int{1, 16}
	if m.small {
		h, contexts, counts = kernels.Heads{Q: 4, KV: 2, Dim: 64}, []int{40}, []int{2}
	}
	for _, context := range contexts {
		for _, seqs := range counts {
			pages := (context + kernels.BlockSize - 1) / kernels.BlockSize
			k, e1 := m.tensor(m.b.KVType(), seqs*pages, h.KV, kernels.BlockSize, h.Dim)
			v, e2 := m.tensor(m.b.KVType(), seqs*pages, h.KV, kernels.BlockSize, h.Dim)
			qkv, e3 := m.tensor(m.b.ActType(), seqs, h.Cols())
			dst, e4 := m.tensor(m.b.ActType(), seqs, h.Q*h.Dim)
			if err := errors.Join(e1, e2, e3, e4); err != nil {
				return nil, err
			}
			m.ops.Begin(decodeBatch(seqs, context, pages))
			bytes := 2 * int64(seqs) * int64(context) * int64(h.KV*h.Dim) * int64(m.b.KVType().Bits()/8)
			a := kernels.AttentionArgs{Dst: dst, QKV: qkv, Heads: h, KV: kernels.KVLayer{K: k, V: v}, Scale: 0.088}
			one, err := m.kernel(fmt.Sprintf("attention, %d × context %d", seqs, context), bytes,
				4*float64(seqs)*float64(context)*float64(h.Q*h.Dim), func(int) { m.ops.Attention(a) })
			if err != nil {
				return nil, err
			}
			all = append(all, one)
			if err := m.release(); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// decodeBatch is one token each of sequences that have so much context.
func decodeBatch(seqs, context, pages int) *kernels.Batch {
	b := &kernels.Batch{Starts: []int32{0}}
	for s := range seqs {
		table := make([]int32, pages)
		for i := range table {
			table[i] = int32(s*pages + i)
		}
		last := context - 1
		b.Tokens = append(b.Tokens, 0)
		b.Positions = append(b.Positions, int32(last))
		b.Slots = append(b.Slots, table[last/kernels.BlockSize]*kernels.BlockSize+int32(last%kernels.BlockSize))
		b.Starts = append(b.Starts, int32(s+1))
		b.Contexts = append(b.Contexts, int32(context))
		b.BlockTables = append(b.BlockTables, table)
	}
	return b
}

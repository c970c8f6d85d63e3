package cpu

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// pages are one layer's K and V. Of a block and a head they hold 16 positions
// × Dim elements, laid out for the kernels of matrix products (mmArgs):
//
//	K: a panel whose 16 outputs are the positions, k along Dim
//	V: panels whose outputs are 16 columns of Dim, k along the positions
//
//	      bf16               f32           i8
//	K     [Dim/2][16][2]     [Dim][16]     [Dim][16], [16] scales
//	V     [16/2][Dim][2]     [16][Dim]     [16][Dim], [16] scales
//
// A scale is a float32 for each position.
type pages struct {
	k, v   []byte
	heads  kernels.Heads
	format int // fmtBF16, fmtF32 or fmtI8
}

func newPages(op string, kv kernels.KVLayer, h kernels.Heads) pages {
	if !(kv.K.Shape == tensor.Of(kv.K.Shape.Dim(0), h.KV, kernels.BlockSize, kernels.KVDim(h.Dim, kv.K.DType)) && kv.V.Shape == kv.K.Shape &&
		kv.V.DType == kv.K.DType && h.Dim%2 == 0 && h.KV > 0 && h.Q%h.KV == 0) {
		mismatch(op, kv.K, kv.V)
	}
	p := pages{k: mem(kv.K), v: mem(kv.V), heads: h}
	switch kv.K.DType {
	case tensor.BF16:
		p.format = fmtBF16
	case tensor.F32:
		p.format = fmtF32
	case tensor.I8:
		p.format = fmtI8
	default:
		panic(fmt.Sprintf("cpu: %s: pages of %v, want BF16, F32 or I8", op, kv.K.DType))
	}
	return p
}

// size is the bytes of one block's K, or V, of one head.
func (p *pages) size() int {
	switch p.format {
	case fmtBF16:
		return kernels.BlockSize * p.heads.Dim * 2
	case fmtI8:
		return kernels.BlockSize * kernels.KVDim(p.heads.Dim, tensor.I8)
	}
	return kernels.BlockSize * p.heads.Dim * 4
}

// scales are those of a block and head, which begins at b.
func (p *pages) scales(b []byte) *[kernels.BlockSize]float32 {
	return (*[kernels.BlockSize]float32)(unsafe.Pointer(&b[kernels.BlockSize*p.heads.Dim]))
}

// put writes one position's K and V of a head. alone tells that nothing was nor is
// written to the next one: in BF16, where V's positions are multiplied two by two,
// it becomes 0, and not what a sequence before had there.
func (p *pages) put(slot, head int, k, v []float32, alone bool) {
	at := (slot/kernels.BlockSize*p.heads.KV + head) * p.size()
	pos, dim := slot%kernels.BlockSize, p.heads.Dim
	pk, pv := p.k[at:][:p.size()], p.v[at:][:p.size()]
	if p.format == fmtI8 {
		scale, inverse := actScale(k, topQ8)
		for i, x := range k {
			pk[i*kernels.BlockSize+pos] = nearest8(x * inverse)
		}
		p.scales(pk)[pos] = scale
		scale, inverse = actScale(v, topQ8)
		for i, x := range v {
			pv[pos*dim+i] = nearest8(x * inverse)
		}
		p.scales(pv)[pos] = scale
		return
	}
	if p.format == fmtF32 {
		wk := unsafe.Slice((*float32)(unsafe.Pointer(&pk[0])), kernels.BlockSize*dim)
		wv := unsafe.Slice((*float32)(unsafe.Pointer(&pv[0])), kernels.BlockSize*dim)
		for i, x := range k {
			wk[i*kernels.BlockSize+pos] = x
		}
		copy(wv[pos*dim:], v)
		return
	}
	wk := unsafe.Slice((*uint16)(unsafe.Pointer(&pk[0])), kernels.BlockSize*dim)
	wv := unsafe.Slice((*uint16)(unsafe.Pointer(&pv[0])), kernels.BlockSize*dim)
	for i, x := range k {
		wk[i/2*(2*kernels.BlockSize)+2*pos+i%2] = tensor.F32ToBF16(x)
	}
	wv = wv[pos/2*2*dim+pos%2:]
	for i, x := range v {
		wv[2*i] = tensor.F32ToBF16(x)
	}
	for i := 1; alone && pos%2 == 0 && i < 2*dim; i += 2 {
		wv[i] = 0
	}
}

// used notes how far slots reach into K and V.
func (p *pages) used(kv kernels.KVLayer, slots []int32) {
	n := (int(slices.Max(slots))/kernels.BlockSize + 1) * p.heads.KV * p.size()
	kv.K.Buf.(*buffer).used(kv.K, n)
	kv.V.Buf.(*buffer).used(kv.V, n)
}

// nearest8 rounds to an integer of 8 bits, |x| ≤ 127.5: the bits of x + 1.5·2²³
// end with it.
func nearest8(x float32) byte { return byte(math.Float32bits(x + 3<<22)) }

// rotary is kernels.RotaryArgs as a task over rows.
type rotary struct {
	vec          *vecSet
	batch        *kernels.Batch
	pages        pages
	qkv          []float32
	qNorm, kNorm []float32
	cos, sin     []float32
	half         int
	eps          float32
}

func (o *ops) Rotary(a kernels.RotaryArgs) {
	h, rows, half := a.Heads, len(o.batch.Positions), a.Cos.Shape.Dim(1)
	if !(isMatrix(a.QKV, rows, h.Cols()) && a.Sin.Shape == a.Cos.Shape && 2*half <= h.Dim &&
		(a.QNorm.IsNone() || isVector(a.QNorm, h.Dim)) && (a.KNorm.IsNone() || isVector(a.KNorm, h.Dim))) {
		mismatch("Rotary", a.QKV, a.Cos, a.Sin, a.QNorm, a.KNorm)
	}
	o.rotary = rotary{
		vec: o.path.vec, batch: o.batch, pages: newPages("Rotary", a.KV, h), qkv: floats(a.QKV),
		qNorm: floats(a.QNorm), kNorm: floats(a.KNorm), cos: floats(a.Cos), sin: floats(a.Sin), half: half, eps: a.Eps,
	}
	o.pool.run(&o.rotary, rows, max(1, rowGrain/4/h.Cols()))
	o.rotary.pages.used(a.KV, o.batch.Slots)
	o.rotary = rotary{}
}

func (t *rotary) run(_ *worker, lo, hi int) {
	h := t.pages.heads
	for r := lo; r < hi; r++ {
		row := t.qkv[r*h.Cols():][:h.Cols()]
		at := int(t.batch.Positions[r]) * t.half
		cos, sin := t.cos[at:][:t.half], t.sin[at:][:t.half]
		for i := range h.Q + h.KV {
			x := row[i*h.Dim:][:h.Dim]
			w := t.qNorm
			if i >= h.Q {
				w = t.kNorm
			}
			if w != nil {
				t.vec.norm(x, x, w, t.eps)
			}
			t.vec.turn(x[:t.half], x[t.half:2*t.half], cos, sin)
		}
		k, v := row[h.Q*h.Dim:], row[(h.Q+h.KV)*h.Dim:]
		slots := t.batch.Slots[r:]
		alone := len(slots) == 1 || slots[1] != slots[0]+1
		for i := range h.KV {
			t.pages.put(int(slots[0]), i, k[i*h.Dim:][:h.Dim], v[i*h.Dim:][:h.Dim], alone)
		}
	}
}

package cuda

import (
	"fmt"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Limits of the kernels on the width of a head.
const (
	maxRotaryDim    = 512
	maxAttentionDim = 256
)

// pages checks that a layer's pages fit the heads.
func (o *ops) pages(op string, kv kernels.KVLayer, h kernels.Heads) {
	if !(kv.K.Shape == tensor.Of(kv.K.Shape.Dim(0), h.KV, kernels.BlockSize, h.Dim) && kv.V.Shape == kv.K.Shape &&
		kv.K.DType == o.kvType && kv.V.DType == o.kvType && h.KV > 0 && h.Q%h.KV == 0) {
		mismatch(op, kv.K, kv.V)
	}
	o.stream.own(op, kv.K, kv.V)
}

func (o *ops) Rotary(a kernels.RotaryArgs) {
	h, rows, half := a.Heads, o.batch.rows, a.Cos.Shape.Dim(1)
	if !(isMatrix(a.QKV, rows, h.Cols()) && a.QKV.DType == o.actType && a.Sin.Shape == a.Cos.Shape && 2*half <= h.Dim &&
		(a.QNorm.IsNone() || isVector(a.QNorm, h.Dim)) && (a.KNorm.IsNone() || isVector(a.KNorm, h.Dim))) {
		mismatch("Rotary", a.QKV, a.Cos, a.Sin, a.QNorm, a.KNorm)
	}
	o.pages("Rotary", a.KV, h)
	o.stream.own("Rotary", a.QKV, a.Cos, a.Sin, a.QNorm, a.KNorm)
	if h.Dim > maxRotaryDim {
		o.stream.fail(fmt.Errorf("Rotary of heads of %d elements, %d at most: %w", h.Dim, maxRotaryDim, device.ErrNotSupported))
		return
	}
	l := o.stream.launch("Rotary", o.fn.rotary[o.pair], rows, (h.Q+2*h.KV+3)/4, 1, 128)
	l.ptr(at(a.QKV))
	l.ptr(at(a.KV.K))
	l.ptr(at(a.KV.V))
	l.ptr(at(a.Cos))
	l.ptr(at(a.Sin))
	l.ptr(o.batch.positions)
	l.ptr(o.batch.slots)
	l.ptr(at(a.QNorm))
	l.ptr(at(a.KNorm))
	l.i32(h.Q)
	l.i32(h.KV)
	l.i32(h.Dim)
	l.i32(half)
	l.f32(a.Eps)
	l.end()
}

func (o *ops) Attention(a kernels.AttentionArgs) {
	h, rows := a.Heads, o.batch.rows
	if !(isMatrix(a.Dst, rows, h.Q*h.Dim) && isMatrix(a.QKV, rows, h.Cols()) && a.Window >= 0 &&
		a.Dst.DType == o.actType && a.QKV.DType == o.actType) {
		mismatch("Attention", a.Dst, a.QKV)
	}
	o.pages("Attention", a.KV, h)
	o.stream.own("Attention", a.Dst, a.QKV)
	switch {
	case h.Dim > maxAttentionDim:
		o.stream.fail(fmt.Errorf("Attention of heads of %d elements, %d at most: %w", h.Dim, maxAttentionDim, device.ErrNotSupported))
	case o.fn.split[h.Dim] != nil && o.kvType == tensor.BF16:
		o.tensorCores(&a)
	default:
		o.anyAttention(&a)
	}
}

// tensorCores queues attention on bf16 pages: sequences with few rows by one
// kernel, as many at a time as the scratch memory has room for; those with many
// by another.
func (o *ops) tensorCores(a *kernels.AttentionArgs) {
	h, t := a.Heads, &o.batch
	if !o.items(h.Q / h.KV) {
		return
	}
	row, parts := splitBytes(t.splits, h), halves(h.Dim)
	if !o.grow(&o.scratch, scratchFor(t.rows, t.splits, h), "attention's scratch memory") || !o.counters(t.few.n*parts*h.KV) {
		return
	}
	part := o.scratch.ptr
	for i := 0; i < len(t.runs); {
		first := t.runs[i]
		last := first
		for i++; i < len(t.runs) && int64(t.runs[i].rows-first.row)*row <= scratchBytes; i++ {
			last = t.runs[i]
		}
		// The kernel counts rows from the batch's first.
		rows := last.rows - first.row
		ml := part + driver.Ptr(int64(rows)*int64(t.splits)*int64(h.Q)*int64(h.Dim)*4)
		skip := driver.Ptr(int64(first.row) * int64(t.splits) * int64(h.Q))
		l := o.stream.launch("Attention", o.fn.split[h.Dim][o.act], (last.items-first.item)*parts, h.KV, (t.splits+3)/4, 128)
		o.attentionParams(l, a, t.few.at+driver.Ptr(16*first.item), part-skip*driver.Ptr(4*h.Dim))
		l.ptr(ml - 8*skip)
		l.ptr(o.arrived.ptr)
		o.attentionSizes(l, a)
		l.i32(t.splits)
		l.i32(rows)
		l.end()
	}
	if t.many.n > 0 {
		part += driver.Ptr(o.scratch.size - int64(t.rows)*int64(h.Q)*int64(h.Dim)*4)
		l := o.stream.launch("Attention", o.fn.prefill[h.Dim][o.act], t.many.n*parts, h.KV, 1, 128)
		o.attentionParams(l, a, t.many.at, part)
		o.attentionSizes(l, a)
		l.end()
	}
}

// counters makes sure of n zeros, which the kernel leaves as zeros.
func (o *ops) counters(n int) bool {
	if o.arrived != nil && o.arrived.size >= 4*int64(n) {
		return true
	}
	if !o.grow(&o.arrived, 4*int64(n), "attention's counters") {
		return false
	}
	c := o.stream.push(opSet, "Attention")
	c.dst, c.n = o.arrived.ptr, o.arrived.size
	return true
}

func (o *ops) attentionParams(l *list, a *kernels.AttentionArgs, items, part driver.Ptr) {
	l.ptr(at(a.QKV))
	l.ptr(at(a.KV.K))
	l.ptr(at(a.KV.V))
	l.ptr(o.batch.tables)
	l.ptr(o.batch.positions)
	l.ptr(items)
	l.ptr(part)
}

func (o *ops) attentionSizes(l *list, a *kernels.AttentionArgs) {
	l.ptr(at(a.Dst))
	l.i32(o.batch.stride)
	l.i32(a.Heads.Q)
	l.i32(a.Heads.KV)
	l.i32(a.Window)
	l.f32(a.Scale)
}

// combine merges the splits of rows lo..hi.
func (o *ops) combine(a *kernels.AttentionArgs, lo, hi int, part, ml driver.Ptr, splits int) {
	h := a.Heads
	l := o.stream.launch("Attention", o.fn.combine[o.act], hi-lo, h.Q, 1, 128)
	l.ptr(part)
	l.ptr(ml)
	l.ptr(o.batch.positions + driver.Ptr(4*lo))
	l.ptr(at(a.Dst.Rows(lo, hi)))
	l.i32(h.Dim)
	l.i32(a.Window)
	l.i32(0)
	l.i32(splits)
	l.end()
}

// anyAttention queues attention for all types and widths of heads, as many
// rows at a time as the scratch memory has room for.
func (o *ops) anyAttention(a *kernels.AttentionArgs) {
	h, t := a.Heads, &o.batch
	step := int(min(max(scratchBytes/splitBytes(t.splits, h), 1), int64(t.rows)))
	if !o.grow(&o.scratch, scratchFor(t.rows, t.splits, h), "attention's scratch memory") {
		return
	}
	part := o.scratch.ptr
	ml := part + driver.Ptr(int64(step)*int64(h.Q)*int64(t.splits)*int64(h.Dim)*4)
	for lo := 0; lo < t.rows; lo += step {
		hi := min(lo+step, t.rows)
		l := o.stream.launch("Attention", o.fn.attention[o.pair], hi-lo, h.Q, t.splits, 32)
		l.ptr(at(a.QKV.Rows(lo, hi)))
		l.ptr(at(a.KV.K))
		l.ptr(at(a.KV.V))
		l.ptr(t.tables)
		l.ptr(t.positions + driver.Ptr(4*lo))
		l.ptr(t.seqs + driver.Ptr(4*lo))
		l.ptr(part)
		l.ptr(ml)
		l.i32(t.stride)
		l.i32(h.Q)
		l.i32(h.KV)
		l.i32(h.Dim)
		l.i32(a.Window)
		l.f32(a.Scale)
		l.i32(0)
		l.i32(t.splits)
		l.end()
		o.combine(a, lo, hi, part, ml, t.splits)
	}
}

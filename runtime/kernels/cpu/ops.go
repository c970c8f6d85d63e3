package cpu

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// ops are the operations; each is a task that lives here, so that a step
// allocates nothing. Small ones run on the caller alone.
type ops struct {
	pool  *pool
	arena *arena
	path  *path
	batch *kernels.Batch

	matMul    matMul
	quantRows quantRows
	quant     []byte // activations of the product that is made
	rows      rowsTask
	rotary    rotary
	attention attention
	digest    digestTask

	routing    routing
	experts    experts
	expertRows expertRows
	expert     byExpert
}

// scratch is a worker's own memory for the time of one call.
type scratch struct {
	mm     mmArgs
	dense  denseArgs
	flip   [denseWide][lanes * groupLen]uint16 // zeros but in a call of a kernel
	panels []byte                              // of a dense weight, unpacked
	ragged [blockRows * lanes]float32
	group  [groupLen]float32
	q      []float32 // attention: scaled rows of Q
	scores []float32
	halves []byte // attention: the rows of Q or their probabilities as bfloat16
	part   attnState
	sum    attnState

	stacked weight // byExpert: one expert of a stack
	product matMul

	missed []uint32 // Pack: see denseArgs
	raw    []byte   // Pack: rows as they are stored
	quant  quantizer
}

// grow makes s at least n long; what it held is lost.
func grow[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n+n/4)
	}
	return (*s)[:n]
}

func (o *ops) Begin(b *kernels.Batch) {
	o.batch = b
	o.arena.turn()
}

// rowGrain elements are worth another goroutine's attention.
const rowGrain = 16 << 10

// rowsTask does one of the operations that take row by row.
type rowsTask struct {
	do   func(t *rowsTask, row int)
	path *path
	dst  []float32
	x    []float32
	w    []float32
	n    int // elements in a row of x
	eps  float32
	act  kernels.Activation
	from *weight
	ids  []int32
	out  []byte
}

func (t *rowsTask) run(_ *worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		t.do(t, i)
	}
}

func (o *ops) byRow(t rowsTask, rows int) {
	t.path = o.path
	o.rows = t
	o.pool.run(&o.rows, rows, max(1, rowGrain/max(1, t.n)))
	o.rows = rowsTask{}
}

func (o *ops) Embed(dst tensor.Tensor, table kernels.Weight) {
	w := table.(*weight)
	if !isMatrix(dst, len(o.batch.Tokens), w.cols) {
		mismatch("Embed", dst)
	}
	o.byRow(rowsTask{do: embedRow, dst: floats(dst), from: w, ids: o.batch.Tokens, n: 4 * w.cols}, len(o.batch.Tokens))
}

func embedRow(t *rowsTask, i int) {
	id := int(t.ids[i])
	if id < 0 || id >= t.from.rows {
		panic(fmt.Sprintf("cpu: Embed: token %d of a table of %d", id, t.from.rows))
	}
	t.from.row(t.dst[i*t.from.cols:][:t.from.cols], id)
}

func (o *ops) RMSNorm(dst, x, w tensor.Tensor, eps float32) {
	rows, n := x.Shape.Dim(0), x.Shape.Dim(1)
	if !(isMatrix(x, rows, n) && dst.Shape == x.Shape && isVector(w, n)) {
		mismatch("RMSNorm", dst, x, w)
	}
	o.byRow(rowsTask{do: normRow, dst: floats(dst), x: floats(x), w: floats(w), eps: eps, n: n}, rows)
}

func normRow(t *rowsTask, i int) {
	t.path.vec.norm(t.dst[i*t.n:][:t.n], t.x[i*t.n:][:t.n], t.w, t.eps)
}

func (o *ops) GatedAct(dst, gateUp tensor.Tensor, act kernels.Activation) {
	rows, n := gateUp.Shape.Dim(0), gateUp.Shape.Dim(1)
	if !(isMatrix(dst, rows, n/2) && isMatrix(gateUp, rows, n/2*2) && act <= kernels.GELUTanh) {
		mismatch("GatedAct", dst, gateUp)
	}
	o.byRow(rowsTask{do: gateRow, dst: floats(dst), x: floats(gateUp), act: act, n: n}, rows)
}

func gateRow(t *rowsTask, i int) {
	x, n := t.x[i*t.n:][:t.n], t.n/2
	t.path.vec.gated(t.dst[i*n:][:n], x[:n], x[n:], t.act)
}

func (o *ops) GatherRows(dst, src tensor.Tensor) {
	n := src.Shape.Dim(1)
	if !(isMatrix(dst, len(o.batch.Logits), n) && dst.DType == src.DType) {
		mismatch("GatherRows", dst, src)
	}
	to, from := mem(dst), mem(src)
	size := n * src.DType.Bits() / 8
	for r, t := range o.batch.Logits {
		copy(to[r*size:][:size], from[int(t)*size:][:size])
	}
}

func (o *ops) Argmax(dst, logits tensor.Tensor) {
	rows, n := logits.Shape.Dim(0), logits.Shape.Dim(1)
	if !(isVector(dst, rows) && dst.DType == tensor.I32 && isMatrix(logits, rows, n)) {
		mismatch("Argmax", dst, logits)
	}
	o.byRow(rowsTask{do: argmaxRow, x: floats(logits), n: n, out: mem(dst)}, rows)
}

func argmaxRow(t *rowsTask, i int) {
	binary.LittleEndian.PutUint32(t.out[4*i:], uint32(t.path.vec.argmax(t.x[i*t.n:][:t.n])))
}

func (o *ops) Copy(dst, src tensor.Tensor) {
	mustSize("Copy", src.Bytes(), dst.Bytes())
	copy(mem(dst), mem(src))
}

// digestPiece is how many bytes one item of a digest has; a multiple of 8.
const digestPiece = 64 << 10

type digestTask struct {
	b    []byte
	sums [2]atomic.Uint64
}

func (o *ops) Digest(out *kernels.Digest, t tensor.Tensor) {
	d := &o.digest
	d.b = mem(t)
	first := kernels.NewDigest(int64(len(d.b)))
	d.sums[0].Store(first[0])
	d.sums[1].Store(first[1])
	o.pool.run(d, (len(d.b)+digestPiece-1)/digestPiece, 1)
	*out = kernels.Digest{d.sums[0].Load(), d.sums[1].Load()}
	d.b = nil
}

func (d *digestTask) run(_ *worker, lo, hi int) {
	var s kernels.Digest
	s.Add(d.b[lo*digestPiece:min(hi*digestPiece, len(d.b))], int64(lo*digestPiece))
	d.sums[0].Add(s[0])
	d.sums[1].Add(s[1])
}

// mismatch panics: operands that do not fit together are a programming error.
func mismatch(op string, ts ...tensor.Tensor) {
	s := "cpu: " + op + ": operands do not fit together:"
	for _, t := range ts {
		s += fmt.Sprintf(" %v%v", t.DType, t.Shape)
	}
	panic(s)
}

func isMatrix(t tensor.Tensor, rows, cols int) bool { return t.Shape == tensor.Of(rows, cols) }
func isVector(t tensor.Tensor, n int) bool          { return t.Shape == tensor.Of(n) }

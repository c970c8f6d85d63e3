package cuda

import (
	"unsafe"

	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
)

const (
	// maxReplayed sequences may be in a step that is replayed from a graph;
	// with more, the device is busy longer than the host needs to launch.
	maxReplayed = 64
	// splitLen positions of a context are one split; see src/attention.cu.
	splitLen = 128
	// fewFlats flat rows of a sequence, or less, are done by the kernel that
	// shares a context among blocks; more by the one that takes rows together.
	fewFlats = 64
	itemFew  = 16 // flat rows of a work item of the former
	itemMany = 64 // and of the latter
	// reservedGroup Q heads for a K/V head have room for their work items.
	reservedGroup = 64
)

// batch is what kernels read about the step, in one buffer of the device that
// is filled by one copy. Where things lie in it depends only on how many rows
// and sequences there are, and on the longest context rounded up to a power of
// two.
type batch struct {
	buf *buffer

	tokens, positions, slots, seqs, logitRows, tables driver.Ptr

	rows   int // positions
	logits int
	stride int // pages in a row of the tables
	splits int // of the longest context, rounded up
	group  int // Q heads for a K/V head that the items are for; 0: none yet
	few    items
	many   items
	runs   []run // the sequences of few

	ints []int32 // all of it, on the host
	all  *kernels.Batch
}

// run is one sequence's rows and work items, half-open.
type run struct{ row, rows, item, items int }

// items are the work of one attention kernel.
type items struct {
	at driver.Ptr
	n  int
}

// powerOfTwo is the smallest one ≥ n.
func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// Begin implements kernels.Ops: it queues the copy of b to the device.
func (o *ops) Begin(b *kernels.Batch) {
	s, t := o.stream, &o.batch
	s.layer = -1
	t.all = b
	t.rows, t.logits = max(len(b.Positions), len(b.Tokens)), len(b.Logits)
	s.hold = t.rows <= maxReplayed && len(b.Contexts) == t.rows
	longest, pages := 0, 0
	for i, n := range b.Contexts {
		longest = max(longest, int(n))
		pages = max(pages, len(b.BlockTables[i]))
	}
	t.stride, t.splits = powerOfTwo(max(pages, 4)), powerOfTwo((longest+splitLen-1)/splitLen)

	v := t.ints[:0]
	offset := func(part []int32) int {
		at := len(v)
		v = append(v, part...)
		return at
	}
	tokens, positions, slots := offset(b.Tokens), offset(b.Positions), offset(b.Slots)
	seqs := len(v)
	for i := range b.Contexts {
		for r := b.Starts[i]; r < b.Starts[i+1]; r++ {
			v = append(v, int32(i))
		}
	}
	logits, tables := offset(b.Logits), len(v)
	for i := range b.Contexts {
		v = append(v, b.BlockTables[i]...)
		for n := len(b.BlockTables[i]); n < t.stride; n++ {
			v = append(v, -1) // reading on is an error
		}
	}
	first := len(v)
	if t.group > 0 {
		v = t.appendItems(v)
	}
	t.ints = v
	if len(v) == 0 {
		return
	}
	// Room for the items in any case.
	if !o.grow(&t.buf, 4*int64(len(v)+4*maxItems(b, max(t.group, reservedGroup))), "the batch's tables") {
		return
	}
	at := func(i int) driver.Ptr { return t.buf.ptr + driver.Ptr(4*i) }
	t.tokens, t.positions, t.slots, t.seqs, t.logitRows, t.tables = at(tokens), at(positions), at(slots), at(seqs), at(logits), at(tables)
	t.place(at(first))
	s.upload("Begin", t.buf.ptr, bytesOf(v))
}

// maxItems bounds the work items of a batch for groups of g heads.
func maxItems(b *kernels.Batch, g int) int {
	return len(b.Contexts) + (len(b.Positions)*g+itemFew-1)/itemFew
}

// appendItems makes the work items for the group, four numbers each: the
// sequence, its first row, the item's first flat row, and how many the sequence
// has.
func (t *batch) appendItems(v []int32) []int32 {
	b := t.all
	t.few.n, t.many.n, t.runs = 0, 0, t.runs[:0]
	for _, pass := range []struct {
		size int32
		few  bool
		to   *items
	}{{itemFew, true, &t.few}, {itemMany, false, &t.many}} {
		for i := range b.Contexts {
			lo, hi := b.Starts[i], b.Starts[i+1]
			flats := (hi - lo) * int32(t.group)
			if (flats <= fewFlats) != pass.few {
				continue
			}
			if pass.few {
				n := (int(flats) + itemFew - 1) / itemFew
				t.runs = append(t.runs, run{int(lo), int(hi), t.few.n, t.few.n + n})
			}
			for f := int32(0); f < flats; f += pass.size {
				v = append(v, int32(i), lo, f, flats)
				pass.to.n++
			}
		}
	}
	return v
}

// place says where the items lie.
func (t *batch) place(at driver.Ptr) {
	t.few.at = at
	t.many.at = at + driver.Ptr(16*t.few.n)
}

// items makes sure that the work items are for groups of g heads. All layers
// of a model have the same, so that this happens once, in its first step.
func (o *ops) items(g int) bool {
	t := &o.batch
	if t.group == g {
		return true
	}
	t.group = g
	n := len(t.ints)
	t.ints = t.appendItems(t.ints)
	if need := 4 * int64(len(t.ints)); need > t.buf.size {
		o.stream.hold = false
		if !o.grow(&t.buf, need, "the batch's tables") {
			return false
		}
		shift := t.buf.ptr
		old := t.tokens
		for _, p := range []*driver.Ptr{&t.positions, &t.slots, &t.seqs, &t.logitRows, &t.tables, &t.tokens} {
			*p += shift - old
		}
		t.place(shift + driver.Ptr(4*n))
		o.stream.upload("Begin", t.buf.ptr, bytesOf(t.ints))
		return true
	}
	t.place(t.buf.ptr + driver.Ptr(4*n))
	o.stream.upload("Begin", t.few.at, bytesOf(t.ints[n:]))
	return true
}

// bytesOf views numbers as the bytes that a device reads: little-endian, as
// every platform with a driver is.
func bytesOf(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

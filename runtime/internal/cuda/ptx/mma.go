package ptx

import (
	"math"
	"strconv"
	"strings"
)

// mmaDecoder says how many elements of type t a 32-bit register holds, and reads
// the i-th. Each is a float64 exactly.
func mmaDecoder(t typ) (elem int, dec func(reg uint32, i int) float64) {
	switch t {
	case tF16:
		return 2, func(r uint32, i int) float64 { return float64(f16ToF32(r >> (16 * i) & 0xffff)) }
	case tBF16:
		return 2, func(r uint32, i int) float64 { return float64(bf16ToF32(r >> (16 * i) & 0xffff)) }
	case tTF32:
		// The hardware ignores the bits tf32 does not have.
		return 1, func(r uint32, _ int) float64 { return float64(math.Float32frombits(r &^ 0x1fff)) }
	case tS8:
		return 4, func(r uint32, i int) float64 { return float64(int8(r >> (8 * i))) }
	case tU8:
		return 4, func(r uint32, i int) float64 { return float64(uint8(r >> (8 * i))) }
	case tE4M3:
		return 4, func(r uint32, i int) float64 { return float64(e4m3ToF32(r >> (8 * i) & 0xff)) }
	case tE5M2:
		return 4, func(r uint32, i int) float64 { return float64(e5m2ToF32(r >> (8 * i) & 0xff)) }
	}
	return 0, nil
}

// buildMma is mma.sync of the m16n8 shapes. Products are summed in float64 and
// rounded to the accumulator once: at least as exact as the hardware.
func buildMma(b *builder) exec {
	b.args(4)
	s := b.s
	ts := s.typs()
	if !s.has("sync") || !s.has("row") || !s.has("col") || len(ts) != 4 {
		return nil
	}
	k := 0
	for _, m := range s.mods {
		if rest, ok := strings.CutPrefix(m, "m16n8k"); ok {
			k, _ = strconv.Atoi(rest)
		}
	}
	dt, at, bt, ct := ts[0], ts[1], ts[2], ts[3]
	elem, decA := mmaDecoder(at)
	elemB, decB := mmaDecoder(bt)
	if elem == 0 || elem != elemB || (at != bt && elem != 4) || k%(4*elem) != 0 || k == 0 || k > 32 || dt != ct {
		return nil
	}
	ints := at == tS8 || at == tU8
	switch {
	case ints && dt == tS32:
	case !ints && dt == tF32:
	case at == tF16 && dt == tF16:
	default:
		return nil
	}
	regs := func(i, n int) []uintptr {
		o := b.arg(i)
		if o.kind != opVec && n == 1 {
			return []uintptr{b.srcOp(o, tB32)}
		}
		if o.kind != opVec || len(o.list) != n {
			b.fail("operand %d needs %d registers", i+1, n)
		}
		var out []uintptr
		for j := range o.list {
			if i == 0 {
				out = append(out, b.dstOp(&o.list[j], tB32))
			} else {
				out = append(out, b.srcOp(&o.list[j], tB32))
			}
		}
		return out
	}
	nc := 4
	if dt == tF16 {
		nc = 2
	}
	p := &mmaOp{
		k: k, elem: elem, bf16: at == tBF16 && bt == tBF16, decA: decA, decB: decB,
		d: regs(0, nc), a: regs(1, 2*k/(4*elem)), b: regs(2, k/(4*elem)), c: regs(3, nc),
	}
	b.in.kind, b.in.macs = kSync, 16*8*k
	sat := s.has("satfinite")
	fin := p.finishF32
	switch {
	case ints:
		fin = func(w *warp, sum *[16][8]float64) { p.finishInt(w, sum, sat) }
	case dt == tF16:
		fin = p.finishF16
	}
	return func(w *warp, m uint32) {
		if m != allLanes {
			w.fail(FaultDivergence, lowest(m), "lanes %#x of the warp do not execute a matrix product, which needs all", ^m)
			return
		}
		p.multiply(w, &w.sum)
		fin(w, &w.sum)
	}
}

// mmaOp is a matrix product D[16×8] = A[16×K]·B[K×8] + C[16×8] of one warp. In
// every shape lane l holds, with g = l/4 and t = l%4 and e elements in a
// register: in register r of A row g+8(r&1), columns 4e(r>>1)+et onwards; in
// register r of B rows 4er+et onwards of column g; of C and D row g, then g+8,
// columns 2t and 2t+1. (PTX manual, matrix fragments of mma.m16n8.)
type mmaOp struct {
	k, elem    int
	bf16       bool // both of A and B
	decA, decB func(reg uint32, i int) float64
	d, a, b, c []uintptr
}

// multiply gathers the fragments and sums the products. Columns of B that are
// all zero, as the padding of a batch is, are not multiplied out: their sums are
// zero if A is finite.
func (p *mmaOp) multiply(w *warp, sum *[16][8]float64) {
	var ma [16][32]float64 // row, k
	var mb [8][32]float64  // column, k
	finite := true
	for r, off := range p.a {
		v := view[uint32](w, off)
		col := 4 * p.elem * (r >> 1)
		for l := range v {
			row := &ma[l>>2+8*(r&1)]
			at := col + p.elem*(l&3)
			if p.bf16 {
				x := v[l]
				row[at&31] = float64(math.Float32frombits(x << 16))
				row[(at+1)&31] = float64(math.Float32frombits(x & 0xffff0000))
				finite = finite && x&0x7f80 != 0x7f80 && x&0x7f800000 != 0x7f800000
				continue
			}
			for i := range p.elem {
				f := p.decA(v[l], i)
				row[(at+i)&31] = f
				finite = finite && f-f == 0
			}
		}
	}
	used := [8]bool{}
	for r, off := range p.b {
		v := view[uint32](w, off)
		for l := range v {
			x := v[l]
			if x == 0 {
				continue
			}
			used[l>>2] = true
			col := &mb[l>>2]
			at := 4*p.elem*r + p.elem*(l&3)
			if p.bf16 {
				col[at&31] = float64(math.Float32frombits(x << 16))
				col[(at+1)&31] = float64(math.Float32frombits(x & 0xffff0000))
				continue
			}
			for i := range p.elem {
				col[(at+i)&31] = p.decB(x, i)
			}
		}
	}
	for c := range used {
		y := &mb[c]
		if !used[c] && finite {
			for i := range sum {
				sum[i][c] = 0
			}
			continue
		}
		for i := 0; i < 16; i += 4 {
			a0, a1, a2, a3 := &ma[i], &ma[i+1], &ma[i+2], &ma[i+3]
			var s0, s1, s2, s3 float64
			for k := range p.k {
				v := y[k&31]
				s0 += a0[k&31] * v
				s1 += a1[k&31] * v
				s2 += a2[k&31] * v
				s3 += a3[k&31] * v
			}
			sum[i][c], sum[i+1][c], sum[i+2][c], sum[i+3][c] = s0, s1, s2, s3
		}
	}
}

func (p *mmaOp) finishF32(w *warp, sum *[16][8]float64) {
	for r := range 4 {
		c, d := view[float32](w, p.c[r]), view[float32](w, p.d[r])
		for l := range d {
			d[l] = float32(float64(c[l]) + sum[l>>2+8*(r>>1)][2*(l&3)+r&1])
		}
	}
}

func (p *mmaOp) finishF16(w *warp, sum *[16][8]float64) {
	for r := range 2 {
		c, d := view[uint32](w, p.c[r]), view[uint32](w, p.d[r])
		for l := range d {
			row := &sum[l>>2+8*r]
			lo := float64(f16ToF32(c[l]&0xffff)) + row[2*(l&3)]
			hi := float64(f16ToF32(c[l]>>16)) + row[2*(l&3)+1]
			d[l] = uint32(f16FromFloat(lo, rndNearest)) | uint32(f16FromFloat(hi, rndNearest))<<16
		}
	}
}

func (p *mmaOp) finishInt(w *warp, sum *[16][8]float64, sat bool) {
	for r := range 4 {
		c, d := view[int32](w, p.c[r]), view[int32](w, p.d[r])
		for l := range d {
			v := int64(c[l]) + int64(sum[l>>2+8*(r>>1)][2*(l&3)+r&1])
			if sat {
				v = max(math.MinInt32, min(math.MaxInt32, v))
			}
			d[l] = int32(v)
		}
	}
}

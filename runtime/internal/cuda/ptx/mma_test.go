package ptx

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// fragment positions as the PTX manual gives them for each shape, written out
// here apart from the interpreter's one formula.
type fragments struct {
	a, b func(lane, i int) (row, col int) // element i of the lane's registers
}

func TestMatrixProducts(t *testing.T) {
	half16 := fragments{
		a: func(l, i int) (int, int) {
			row := l / 4
			if i&2 != 0 { // a2, a3, a6, a7
				row += 8
			}
			col := l%4*2 + i&1
			if i >= 4 {
				col += 8
			}
			return row, col
		},
		b: func(l, i int) (int, int) {
			row := l%4*2 + i&1
			if i >= 2 {
				row += 8
			}
			return row, l / 4
		},
	}
	bytes32 := fragments{
		a: func(l, i int) (int, int) {
			row := l / 4
			if i >= 4 && i < 8 || i >= 12 {
				row += 8
			}
			col := l%4*4 + i&3
			if i >= 8 {
				col += 16
			}
			return row, col
		},
		b: func(l, i int) (int, int) {
			row := l%4*4 + i&3
			if i >= 4 {
				row += 16
			}
			return row, l / 4
		},
	}
	tf32 := fragments{
		a: func(l, i int) (int, int) {
			row, col := l/4, l%4
			if i == 1 || i == 3 {
				row += 8
			}
			if i >= 2 {
				col += 4
			}
			return row, col
		},
		b: func(l, i int) (int, int) { return l%4 + 4*i, l / 4 },
	}
	bf16 := func(v uint64) float64 { return halfRef("bf16", v&0xffff) }
	f16 := func(v uint64) float64 { return f16ref(v & 0xffff) }
	s8 := func(v uint64) float64 { return float64(int8(v)) }
	u8 := func(v uint64) float64 { return float64(uint8(v)) }
	tf := func(v uint64) float64 { return float64(math.Float32frombits(uint32(v) &^ 0x1fff)) }
	for _, c := range []struct {
		shape    string // with types
		k, bits  int
		frag     fragments
		da, db   func(uint64) float64
		acc      string // f32 f16 s32
		contents string // of A and B
	}{
		{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, half16, bf16, bf16, "f32", "bf16"},
		{"m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, half16, bf16, bf16, "f32", "bf16"},
		{"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, half16, f16, f16, "f32", "f16"},
		{"m16n8k8.row.col.f32.f16.f16.f32", 8, 16, half16, f16, f16, "f32", "f16"},
		{"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, half16, f16, f16, "f16", "f16"},
		{"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, tf32, tf, tf, "f32", "f32"},
		{"m16n8k4.row.col.f32.tf32.tf32.f32", 4, 32, tf32, tf, tf, "f32", "f32"},
		{"m16n8k32.row.col.s32.s8.s8.s32", 32, 8, bytes32, s8, s8, "s32", "bytes"},
		{"m16n8k16.row.col.s32.s8.s8.s32", 16, 8, bytes32, s8, s8, "s32", "bytes"},
		{"m16n8k32.row.col.satfinite.s32.u8.s8.s32", 32, 8, bytes32, u8, s8, "s32", "bytes"},
	} {
		r := rng(7)
		per := 32 / c.bits // elements of a register
		na, nb, nc := 16*c.k/32/per, 8*c.k/32/per, 4
		if c.acc == "f16" {
			nc = 2
		}
		word := func() uint32 {
			switch c.contents {
			case "bf16":
				h := toBF16([]float32{r.float(), r.float()})
				return uint32(h[0]) | uint32(h[1])<<16
			case "f16":
				h := uint32(0x3000+r.next()%0x1000) | uint32(0xb000+r.next()%0x1000)<<16
				return h
			case "f32":
				return math.Float32bits(r.float())
			}
			return uint32(r.next())
		}
		fill := func(n int) [][]uint32 { // [register][lane]
			out := make([][]uint32, n)
			for i := range out {
				for range 32 {
					out[i] = append(out[i], word())
				}
			}
			return out
		}
		ra, rb := fill(na), fill(nb)
		rc := make([][]uint32, nc)
		for i := range rc {
			for l := range 32 {
				switch c.acc {
				case "f32":
					rc[i] = append(rc[i], math.Float32bits(float32(l-3*i)))
				case "s32":
					rc[i] = append(rc[i], uint32(l-77*i))
				default:
					rc[i] = append(rc[i], 0x3c00|0x4000<<16)
				}
			}
		}
		var am, bm [32][32]float64
		for l := range 32 {
			for i := range na * per {
				row, col := c.frag.a(l, i)
				am[row][col] = c.da(uint64(ra[i/per][l] >> (i % per * c.bits)))
			}
			for i := range nb * per {
				row, col := c.frag.b(l, i)
				bm[row][col] = c.db(uint64(rb[i/per][l] >> (i % per * c.bits)))
			}
		}
		got := runMma(t, c.shape, ra, rb, rc)
		for l := range 32 {
			for i := range 4 {
				row, col := l/4+i/2*8, l%4*2+i%2
				sum := 0.0
				for k := range c.k {
					sum += am[row][k] * bm[k][col]
				}
				var have, tol float64
				switch c.acc {
				case "f32":
					sum += float64(math.Float32frombits(rc[i][l]))
					have, tol = float64(math.Float32frombits(got[i][l])), 1e-6*(1+math.Abs(sum))
				case "s32":
					sum += float64(int32(rc[i][l]))
					have = float64(int32(got[i][l]))
				case "f16":
					sh := 16 * (i % 2)
					sum += f16ref(uint64(rc[i/2][l] >> sh & 0xffff))
					have, tol = f16ref(uint64(got[i/2][l]>>sh&0xffff)), 1e-3*(1+math.Abs(sum))
				}
				if math.Abs(have-sum) > tol {
					t.Fatalf("mma %s: lane %d element %d is %g, want %g", c.shape, l, i, have, sum)
				}
			}
		}
	}
}

// runMma executes one mma.sync on given register contents.
func runMma(t *testing.T, shape string, a, b, c [][]uint32) [][]uint32 {
	t.Helper()
	var load, regs strings.Builder
	n := 0
	list := func(rs [][]uint32) string {
		var names []string
		for range rs {
			fmt.Fprintf(&load, "ld.global.b32 %%r%d, [%%in+%d];\n", n, n*128)
			names = append(names, fmt.Sprintf("%%r%d", n))
			n++
		}
		return "{" + strings.Join(names, ",") + "}"
	}
	la, lb, lc := list(a), list(b), list(c)
	for i := range c {
		fmt.Fprintf(&regs, "st.global.b32 [%%out+%d], %%r%d;\n", i*128, len(a)+len(b)+i)
	}
	src := `.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 po, .param .u64 pi) {
	.reg .b32 %r<16>, %i;
	.reg .b64 %in, %out;
	mov.u32 %i, %laneid;
	ld.param.u64 %out, [po];
	ld.param.u64 %in, [pi];
	mad.wide.u32 %out, %i, 4, %out;
	mad.wide.u32 %in, %i, 4, %in;
	` + load.String() + "mma.sync.aligned." + shape + " " + lc + ", " + la + ", " + lb + ", " + lc + ";\n" + regs.String() + "ret;\n}\n"
	d := newDevice()
	var in []uint32
	for _, m := range [][][]uint32{a, b, c} {
		for _, r := range m {
			in = append(in, r...)
		}
	}
	out, _ := d.alloc("out", len(c)*128)
	run(t, parse(t, src).Kernel("k"), d, Config{Grid: grid(1, 1), Block: grid(32, 1)}, pack(out, put(d, "in", in)))
	flat := get[uint32](t, d, out, len(c)*32)
	var res [][]uint32
	for i := range c {
		res = append(res, flat[i*32:(i+1)*32])
	}
	return res
}

// TestMatrixMoves runs ldmatrix, stmatrix and movmatrix, plain and transposed,
// against their definition on rows of numbered elements.
func TestMatrixMoves(t *testing.T) {
	src := `.version 7.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 po) {
	.shared .align 16 .b8 s[1024];
	.shared .align 16 .b8 u[1024];
	.reg .b32 %r<16>, %i, %a, %v;
	.reg .b64 %out, %o;
	mov.u32 %i, %laneid;
	ld.param.u64 %out, [po];
	// element e of the 32 rows of 8 holds e
	mov.u32 %a, s;
	shl.b32 %v, %i, 4;
	add.u32 %a, %a, %v;            // row i
	shl.b32 %v, %i, 3;
	mad.lo.u32 %r0, %v, 0x10001, 0x10000;
	add.u32 %r1, %r0, 0x20002;
	add.u32 %r2, %r1, 0x20002;
	add.u32 %r3, %r2, 0x20002;
	st.shared.v4.b32 [%a], {%r0, %r1, %r2, %r3};
	bar.warp.sync -1;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%a];
	ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4,%r5,%r6,%r7}, [%a];
	ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8,%r9}, [%a];
	ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%a];
	movmatrix.sync.aligned.m8n8.trans.b16 %r11, %r0;
	mov.u32 %a, u;
	shl.b32 %v, %i, 4;
	add.u32 %a, %a, %v;
	stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%a], {%r0,%r1,%r2,%r3};
	bar.warp.sync -1;
	ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r12}, [%a];
	mad.wide.u32 %o, %i, 4, %out;
	` + func() string {
		var b strings.Builder
		for i := range 13 {
			fmt.Fprintf(&b, "st.global.b32 [%%o+%d], %%r%d;\n", 128*i, i)
		}
		return b.String()
	}() + "ret;\n}\n"
	d := newDevice()
	out, _ := d.alloc("out", 13*128)
	run(t, parse(t, src).Kernel("k"), d, Config{Grid: grid(1, 1), Block: grid(32, 1)}, pack(out))
	got := get[uint32](t, d, out, 13*32)
	plain := func(m, l int) uint32 { e := uint32(64*m + l/4*8 + l%4*2); return e | (e+1)<<16 }
	trans := func(m, l int) uint32 { e := uint32(64*m + l%4*2*8 + l/4); return e | (e+8)<<16 }
	for l := range 32 {
		want := []uint32{
			plain(0, l), plain(1, l), plain(2, l), plain(3, l), trans(0, l), trans(1, l), trans(2, l), trans(3, l),
			plain(0, l), plain(1, l), trans(0, l), trans(0, l), trans(0, l),
		}
		for i, v := range want {
			if g := got[32*i+l]; g != v {
				t.Errorf("lane %d result %d is %#x, want %#x", l, i, g, v)
			}
		}
	}
}

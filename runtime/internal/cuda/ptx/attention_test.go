package ptx

import (
	"math"
	"testing"
)

// attention is one query of one head against the first n positions of a paged
// cache.
func attention(q []float64, kc, vc []uint16, table []int32, n, kvheads, kv int, scale float64) []float64 {
	const hd, page = 64, 16
	s := make([]float64, n)
	largest := math.Inf(-1)
	at := func(p int) int { return ((int(table[p/page])*page+p%page)*kvheads + kv) * hd }
	for p := range s {
		for j := range hd {
			s[p] += q[j] * fromBF16(kc[at(p)+j])
		}
		s[p] *= scale
		largest = max(largest, s[p])
	}
	sum, out := 0.0, make([]float64, hd)
	for p := range s {
		e := math.Exp(s[p] - largest)
		sum += e
		for j := range hd {
			out[j] += e * fromBF16(vc[at(p)+j])
		}
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// pagedCache makes a cache whose pages are not in order.
func pagedCache(r *rng, n, kvheads int) (kc, vc []uint16, table []int32) {
	pages := (n + 15) / 16
	for i := range pages {
		table = append(table, int32((i*7+3)%(pages+5)))
	}
	if pages%7 == 0 || (pages+5)%7 == 0 { // 7 must not divide the modulus
		for i := range table {
			table[i] = int32(pages - 1 - i)
		}
	}
	size := (pages + 5) * 16 * kvheads * 64
	return toBF16(r.floats(size)), toBF16(r.floats(size)), table
}

func testDecodeAttention(t *testing.T, m *Module) {
	for _, n := range []int{1, 15, 16, 17, 100, 300} {
		const kvheads, group, splits, scale = 2, 3, 3, 0.125
		heads := kvheads * group
		d, r := newDevice(), rng(n)
		kc, vc, table := pagedCache(&r, n, kvheads)
		q := toBF16(r.floats(heads * 64))
		part, _ := d.alloc("part", heads*splits*66*4)
		out, _ := d.alloc("out", heads*64*2)
		chunk := (n + splits - 1) / splits
		run(t, m.Kernel("decode_split"), d, Config{Grid: grid(heads, splits), Block: grid(128, 1)},
			pack(put(d, "q", q), put(d, "k", kc), put(d, "v", vc), put(d, "table", table), part,
				int32(n), int32(kvheads), int32(group), int32(chunk), float32(scale)))
		run(t, m.Kernel("decode_combine"), d, Config{Grid: grid(heads, 1), Block: grid(64, 1)}, pack(part, out, int32(splits)))
		got := widen(get[uint16](t, d, out, heads*64))
		for h := range heads {
			want := attention(widen(q[h*64:(h+1)*64]), kc, vc, table, n, kvheads, h/group, scale)
			near(t, "head", got[h*64:(h+1)*64], want, bf16Eps, 1e-4)
		}
	}
}

func testPrefillAttention(t *testing.T, mod *Module) {
	k := mod.Kernel("prefill")
	for _, shape := range [][2]int{{1, 0}, {16, 0}, {21, 0}, {5, 40}, {33, 16}} {
		n, first := shape[0], shape[1]
		const heads, kvheads, scale = 4, 2, 0.125
		d, r := newDevice(), rng(n)
		kc, vc, table := pagedCache(&r, first+n, kvheads)
		q := toBF16(r.floats(n * heads * 64))
		out, _ := d.alloc("out", n*heads*64*2)
		run(t, k, d, Config{Grid: grid(heads, (n+15)/16), Block: grid(32, 1)},
			pack(put(d, "q", q), put(d, "k", kc), put(d, "v", vc), put(d, "table", table), out,
				int32(n), int32(first), int32(heads), int32(kvheads), float32(scale)))
		got := widen(get[uint16](t, d, out, n*heads*64))
		for i := range n {
			for h := range heads {
				at := (i*heads + h) * 64
				want := attention(widen(q[at:at+64]), kc, vc, table, first+i+1, kvheads, h/2, scale)
				near(t, "query", got[at:at+64], want, 2*bf16Eps, 5e-3) // the weights are rounded to bf16 for the second product
			}
		}
	}
}

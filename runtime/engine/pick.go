package engine

import (
	"math"
	"slices"
)

// candidates is the scratch memory of sampling from one row; it is reused.
type candidates struct {
	row   []float32 // a copy to change
	ids   []int32   // ascending
	w     []float64 // weight of ids[i]: e^((logit − max)/temperature)
	sub   []int32   // indices into a row, or into ids
	part  [256]float64
	count [1 << radixBits]int32
	mass  [1 << radixBits]float64
}

// Selection works on orderKey, radixBits at a time from the top.
const radixBits = 11

// digit of a key at a level: 11, 11 and 10 bits.
func digit(key uint32, level int) uint32 {
	switch level {
	case 0:
		return key >> 21
	case 1:
		return key >> 10 & (1<<radixBits - 1)
	}
	return key & (1<<10 - 1)
}

// draw picks a token from a row of logits: temperature, then top_k, top_p and
// min_p in the order of transformers, each on what the one before left, then
// one draw u in [0, 1) over what remains, ids ascending. m is the row's
// maximum, finite.
//
//   - top_k keeps the k largest and all that equal the k-th.
//   - top_p keeps the shortest run, likeliest first and lower ids first among
//     equals, whose probability reaches p.
//   - min_p keeps what has at least min_p times the largest probability.
//
// No pass sorts: the work is linear in the vocabulary, and exponentials are
// computed for as few elements as the settings allow.
func (c *candidates) draw(row []float32, m float32, s *Sampling, u float64) int32 {
	scale, nucleus := 1/s.Temperature, s.TopP > 0 && s.TopP < 1
	floor, want := float32(math.Inf(-1)), 0.0
	switch {
	case s.TopK > 0 && s.TopK < len(row):
		floor = c.kth(row, s.TopK)
	case nucleus:
		floor, want = c.cover(row, m, scale, s.TopP)
	case s.MinP > 0: // a little below, for rounding: the weights decide
		floor = float32((float64(m) + math.Log(s.MinP)*s.Temperature) - 1e-5*(1+math.Abs(float64(m))))
	}
	total := c.gather(row, m, scale, floor)
	if nucleus {
		if want == 0 {
			want = s.TopP * total
		}
		total = c.nucleus(row, want)
	}
	if s.MinP > 0 {
		total = c.atLeast(s.MinP)
	}
	rest := u * total
	for i, w := range c.w {
		if rest -= w; rest < 0 {
			return c.ids[i]
		}
	}
	return c.ids[len(c.ids)-1] // u·total rounded up to the whole
}

// gather makes the elements that are at least floor the candidates, and
// returns their total weight.
func (c *candidates) gather(row []float32, m float32, scale float64, floor float32) float64 {
	c.ids, c.w = c.ids[:0], c.w[:0]
	total := 0.0
	c.chunks(row, m, scale, floor, func(at int, part []float32, w []float64) {
		for i, x := range part {
			if x >= floor && w[i] > 0 {
				c.ids = append(c.ids, int32(at+i))
				c.w = append(c.w, w[i])
				total += w[i]
			}
		}
	})
	return total
}

// cover is a floor above which the likeliest elements with a share p of the
// whole weight lie, and the weight that this share is.
func (c *candidates) cover(row []float32, m float32, scale, p float64) (floor float32, want float64) {
	clear(c.mass[:])
	total := 0.0
	c.chunks(row, m, scale, float32(math.Inf(-1)), func(_ int, part []float32, w []float64) {
		for i, x := range part {
			c.mass[digit(orderKey(x), 0)] += w[i]
			total += w[i]
		}
	})
	want = p * total
	d, _ := c.reach(0, want)
	return keyFloat(d << 21), want
}

// chunks calls f with pieces of row, from index at on, and their weights;
// pieces without an element of at least floor are left out.
func (c *candidates) chunks(row []float32, m float32, scale float64, floor float32, f func(at int, part []float32, w []float64)) {
	for at := 0; at < len(row); at += len(c.part) {
		part := row[at:min(at+len(c.part), len(row))]
		if slices.ContainsFunc(part, func(x float32) bool { return x >= floor }) {
			weights(c.part[:], part, m, scale)
			f(at, part, c.part[:])
		}
	}
}

// reach finds the digit at which the running mass from the highest digit down,
// starting at above, reaches want, and the mass of the digits above it.
// Rounding may leave want just out of reach: then it is the lowest with mass.
func (c *candidates) reach(above, want float64) (uint32, float64) {
	d, last, before := len(c.mass)-1, -1, above
	for ; d >= 0; d-- {
		if c.mass[d] == 0 {
			continue
		}
		last, before = d, above
		if above += c.mass[d]; above >= want {
			break
		}
	}
	return uint32(last), before
}

// kth is the k-th largest element of a row, 0 < k ≤ len(row).
func (c *candidates) kth(row []float32, k int) float32 {
	left := int32(k)
	// lowest digit such that it and those above have what is left
	pick := func() uint32 {
		d := uint32(len(c.count) - 1)
		for ; c.count[d] < left; d-- {
			left -= c.count[d]
		}
		return d
	}
	clear(c.count[:])
	for _, x := range row {
		c.count[digit(orderKey(x), 0)]++
	}
	d := pick()
	c.sub = c.sub[:0]
	for i, x := range row {
		if digit(orderKey(x), 0) == d {
			c.sub = append(c.sub, int32(i))
		}
	}
	for level := 1; level < 3; level++ {
		clear(c.count[:])
		for _, i := range c.sub {
			c.count[digit(orderKey(row[i]), level)]++
		}
		d, n := pick(), 0
		for _, i := range c.sub {
			if digit(orderKey(row[i]), level) == d {
				c.sub[n] = i
				n++
			}
		}
		c.sub = c.sub[:n]
	}
	return row[c.sub[0]]
}

// nucleus cuts the candidates down to the likeliest whose weights reach want,
// and returns their total.
func (c *candidates) nucleus(row []float32, want float64) float64 {
	// Find the value at which the running total, from the top, reaches want.
	var cut uint32
	above := 0.0
	c.sub = c.sub[:0]
	for i := range c.ids {
		c.sub = append(c.sub, int32(i))
	}
	for level, shift := range [3]int{21, 10, 0} {
		clear(c.mass[:])
		for _, i := range c.sub {
			c.mass[digit(orderKey(row[c.ids[i]]), level)] += c.w[i]
		}
		var d uint32
		d, above = c.reach(above, want)
		cut |= d << shift
		n := 0
		for _, i := range c.sub {
			if digit(orderKey(row[c.ids[i]]), level) == d {
				c.sub[n] = i
				n++
			}
		}
		c.sub = c.sub[:n]
	}
	// Among equals, lower ids first.
	last := c.sub[len(c.sub)-1]
	for _, i := range c.sub {
		if above += c.w[i]; above >= want {
			last = i
			break
		}
	}
	total, n := 0.0, 0
	for i, id := range c.ids {
		if k := orderKey(row[id]); k > cut || k == cut && int32(i) <= last {
			c.ids[n], c.w[n] = id, c.w[i]
			total += c.w[i]
			n++
		}
	}
	c.ids, c.w = c.ids[:n], c.w[:n]
	return total
}

// atLeast cuts the candidates down to those of at least a weight, the largest
// being 1, and returns their total.
func (c *candidates) atLeast(least float64) float64 {
	total, n := 0.0, 0
	for i, w := range c.w {
		if w >= least {
			c.ids[n], c.w[n] = c.ids[i], w
			total += w
			n++
		}
	}
	c.ids, c.w = c.ids[:n], c.w[:n]
	return total
}

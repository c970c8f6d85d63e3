package engine

import "math"

// candidates is the scratch memory of sampling from one row; it is reused.
type candidates struct {
	row   []float32 // a copy to change
	ids   []int32
	w     []float64 // weight of ids[i]: e^((logit − max)/temperature)
	sub   []int32   // indices into ids
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
// maximum, finite. No pass sorts: the work is linear in the vocabulary.
//
//   - top_k keeps the k largest and all that equal the k-th.
//   - top_p keeps the shortest run, likeliest first and lower ids first among
//     equals, whose probability reaches p.
//   - min_p keeps what has at least min_p times the largest probability.
func (c *candidates) draw(row []float32, m float32, s *Sampling, u float64) int32 {
	c.ids, c.w = c.ids[:0], c.w[:0]
	scale, top := 1/s.Temperature, float64(m)
	floor := float32(math.Inf(-1))
	if s.TopK > 0 && s.TopK < len(row) {
		floor = c.kth(row, s.TopK)
	}
	total := 0.0
	for i, x := range row {
		if x < floor {
			continue
		}
		if w := weight(float64(x)-top, scale); w > 0 {
			c.ids = append(c.ids, int32(i))
			c.w = append(c.w, w)
			total += w
		}
	}
	if s.TopP > 0 && s.TopP < 1 {
		total = c.nucleus(row, s.TopP*total)
	}
	if s.MinP > 0 {
		total = 0
		n := 0
		for i, w := range c.w {
			if w >= s.MinP {
				c.ids[n], c.w[n] = c.ids[i], w
				total += w
				n++
			}
		}
		c.ids, c.w = c.ids[:n], c.w[:n]
	}
	rest := u * total
	for i, w := range c.w {
		if rest -= w; rest < 0 {
			return c.ids[i]
		}
	}
	return c.ids[len(c.ids)-1] // u·total rounded up to the whole
}

// weight is e^(below·scale), and exactly 1 for the maximum: a temperature so
// small that scale is infinite leaves only the maximum.
func weight(below, scale float64) float64 {
	if below == 0 {
		return 1
	}
	return expNeg(below * scale)
}

// kth is the k-th largest element of a row, 0 < k ≤ len(row).
func (c *candidates) kth(row []float32, k int) float32 {
	left := int32(k)
	c.sub = c.sub[:0]
	for level := 0; ; level++ {
		clear(c.count[:])
		if level == 0 {
			for _, x := range row {
				c.count[digit(orderKey(x), 0)]++
			}
		} else {
			for _, i := range c.sub {
				c.count[digit(orderKey(row[i]), level)]++
			}
		}
		d := uint32(len(c.count) - 1)
		for ; c.count[d] < left; d-- {
			left -= c.count[d]
		}
		if level == 0 {
			for i, x := range row {
				if digit(orderKey(x), 0) == d {
					c.sub = append(c.sub, int32(i))
				}
			}
		} else {
			n := 0
			for _, i := range c.sub {
				if digit(orderKey(row[i]), level) == d {
					c.sub[n] = i
					n++
				}
			}
			c.sub = c.sub[:n]
		}
		if level == 2 || len(c.sub) == 1 {
			return row[c.sub[0]]
		}
	}
}

// nucleus cuts ids and w down to the likeliest ones whose weights reach want,
// and returns their total.
func (c *candidates) nucleus(row []float32, want float64) float64 {
	// Find the key at which the running total, from the top, reaches want.
	var path [3]uint32
	above := 0.0
	c.sub = c.sub[:0]
	for i := range c.ids {
		c.sub = append(c.sub, int32(i))
	}
	for level := range path {
		clear(c.mass[:])
		clear(c.count[:])
		for _, i := range c.sub {
			d := digit(orderKey(row[c.ids[i]]), level)
			c.mass[d] += c.w[i]
			c.count[d]++
		}
		// The lowest digit that occurs takes what rounding left over.
		d, lowest := uint32(len(c.count)-1), uint32(0)
		for c.count[lowest] == 0 {
			lowest++
		}
		for ; d > lowest && above+c.mass[d] < want; d-- {
			above += c.mass[d]
		}
		for c.count[d] == 0 { // want was met just before an empty digit
			d--
		}
		path[level] = d
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
	cut, last := path[0]<<21|path[1]<<10|path[2], c.sub[len(c.sub)-1]
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

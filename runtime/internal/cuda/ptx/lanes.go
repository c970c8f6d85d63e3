package ptx

import "math/bits"

// The loops below come in two forms: over all 32 lanes, which is what almost
// every instruction of a kernel sees, and over the lanes of a mask.

type number interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

type integer interface {
	~int32 | ~uint32 | ~int64 | ~uint64
}

// map1, map2 and map3 apply a function lane by lane: for what is not worth a
// loop of its own.
func map1[D, A any](d, a uintptr, f func(A) D) exec {
	return func(w *warp, m uint32) {
		x, y := view[D](w, d), view[A](w, a)
		for m != 0 {
			l := lane(&m)
			x[l] = f(y[l])
		}
	}
}

func map2[D, A, B any](d, a, b uintptr, f func(A, B) D) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[D](w, d), view[A](w, a), view[B](w, b)
		for m != 0 {
			l := lane(&m)
			x[l] = f(y[l], z[l])
		}
	}
}

func map3[D, A, B, C any](d, a, b, c uintptr, f func(A, B, C) D) exec {
	return func(w *warp, m uint32) {
		x, y, z, u := view[D](w, d), view[A](w, a), view[B](w, b), view[C](w, c)
		for m != 0 {
			l := lane(&m)
			x[l] = f(y[l], z[l], u[l])
		}
	}
}

func opMove[T any](d, a uintptr) exec {
	return func(w *warp, m uint32) {
		x, y := view[T](w, d), view[T](w, a)
		if m == allLanes {
			*x = *y
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l]
		}
	}
}

func opAdd[T number](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] + z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] + z[l]
		}
	}
}

func opSub[T number](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] - z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] - z[l]
		}
	}
}

func opMul[T number](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] * z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] * z[l]
		}
	}
}

func opMad[T integer](d, a, b, c uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z, u := view[T](w, d), view[T](w, a), view[T](w, b), view[T](w, c)
		if m == allLanes {
			for l := range x {
				x[l] = y[l]*z[l] + u[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l]*z[l] + u[l]
		}
	}
}

func opAnd[T integer](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] & z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] & z[l]
		}
	}
}

func opOr[T integer](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] | z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] | z[l]
		}
	}
}

func opXor[T integer](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[T](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] ^ z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] ^ z[l]
		}
	}
}

// opShl shifts by a 32-bit amount; as in PTX, 32 or 64 and more clear the value.
func opShl[T integer](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[uint32](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] << z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] << z[l]
		}
	}
}

// opShr shifts right, filling with the sign if T has one.
func opShr[T integer](d, a, b uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z := view[T](w, d), view[T](w, a), view[uint32](w, b)
		if m == allLanes {
			for l := range x {
				x[l] = y[l] >> z[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = y[l] >> z[l]
		}
	}
}

func opFma32(d, a, b, c uintptr) exec {
	return func(w *warp, m uint32) {
		x, y, z, u := view[float32](w, d), view[float32](w, a), view[float32](w, b), view[float32](w, c)
		if m == allLanes {
			for l := range x {
				s := float64(y[l])*float64(z[l]) + float64(u[l])
				if doubleRounds(s) {
					x[l] = fma32(y[l], z[l], u[l])
				} else {
					x[l] = float32(s)
				}
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = fma32(y[l], z[l], u[l])
		}
	}
}

// opWiden converts between widths and signs by Go's conversion.
func opWiden[D, A number](d, a uintptr) exec {
	return func(w *warp, m uint32) {
		x, y := view[D](w, d), view[A](w, a)
		if m == allLanes {
			for l := range x {
				x[l] = D(y[l])
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = D(y[l])
		}
	}
}

// opMulWide multiplies 32-bit factors to 64 bits, and adds c if add is set.
func opMulWide[D ~int64 | ~uint64, A ~int32 | ~uint32](d, a, b, c uintptr, add bool) exec {
	if !add {
		return func(w *warp, m uint32) {
			x, y, z := view[D](w, d), view[A](w, a), view[A](w, b)
			if m == allLanes {
				for l := range x {
					x[l] = D(y[l]) * D(z[l])
				}
				return
			}
			for m != 0 {
				l := lane(&m)
				x[l] = D(y[l]) * D(z[l])
			}
		}
	}
	return func(w *warp, m uint32) {
		x, y, z, u := view[D](w, d), view[A](w, a), view[A](w, b), view[D](w, c)
		if m == allLanes {
			for l := range x {
				x[l] = D(y[l])*D(z[l]) + u[l]
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			x[l] = D(y[l])*D(z[l]) + u[l]
		}
	}
}

// opCompare writes a comparison's result bits, combined by the caller.
func compareLanes[T number](y, z *[lanesPerWarp]T, m uint32, op cmpOp) uint32 {
	r := uint32(0)
	switch op {
	case cmpEQ:
		for l := range y {
			r |= bit(y[l] == z[l]) << l
		}
	case cmpNE:
		for l := range y {
			r |= bit(y[l] != z[l]) << l
		}
	case cmpLT:
		for l := range y {
			r |= bit(y[l] < z[l]) << l
		}
	case cmpLE:
		for l := range y {
			r |= bit(y[l] <= z[l]) << l
		}
	case cmpGT:
		for l := range y {
			r |= bit(y[l] > z[l]) << l
		}
	case cmpGE:
		for l := range y {
			r |= bit(y[l] >= z[l]) << l
		}
	}
	return r & m
}

// bit is 1 for true, without a branch.
func bit(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

// nans marks the lanes in which either value is not a number.
func nans[T ~float32 | ~float64](y, z *[lanesPerWarp]T, m uint32) uint32 {
	r := uint32(0)
	for left := m; left != 0; {
		l := lane(&left)
		r |= bit(y[l] != y[l] || z[l] != z[l]) << l
	}
	return r
}

func lowest(m uint32) int { return bits.TrailingZeros32(m) & 31 }

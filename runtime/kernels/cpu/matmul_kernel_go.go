package cpu

import (
	"math"
	"unsafe"

	"infer/runtime/tensor"
)

// mmGo is the kernels in Go: what the assembly does, for machines without it.
func mmGo() *mmSet {
	s := &mmSet{maxRows: 4}
	for r := 1; r <= s.maxRows; r++ {
		s.kernels[fmtBF16][r][0] = mmGoBF16
		s.kernels[fmtF16][r][0] = mmGoF16
		s.kernels[fmtF32][r][0] = mmGoF32
		s.kernels[fmtI8][r][0] = mmGoI8
		s.kernels[fmtQ8][r][0] = mmGoQ8
		s.kernels[fmtQ4][r][0] = mmGoQ4
	}
	return s
}

func mmGoBF16(a *mmArgs) {
	for r := range a.rows {
		var acc [lanes]float32
		x := (*float32)(unsafe.Add(a.x, r*a.ldx))
		xs := unsafe.Slice(x, a.k)
		w := a.w
		for ; len(xs) >= 2; xs = xs[2:] {
			p := (*[lanes]uint32)(w)
			x0, x1 := xs[0], xs[1]
			for n := range acc {
				v := acc[n] + x0*math.Float32frombits(p[n]<<16)
				acc[n] = v + x1*math.Float32frombits(p[n]&0xffff0000)
			}
			w = unsafe.Add(w, a.step)
		}
		if len(xs) > 0 {
			p := (*[lanes]uint32)(w)
			for n := range acc {
				acc[n] += xs[0] * math.Float32frombits(p[n]<<16)
			}
		}
		putGo(a, r, &acc)
	}
}

func mmGoF16(a *mmArgs) {
	for r := range a.rows {
		var acc [lanes]float32
		w := a.w
		for _, x := range unsafe.Slice((*float32)(unsafe.Add(a.x, r*a.ldx)), a.k) {
			for n, h := range (*[lanes]uint16)(w) {
				acc[n] += x * tensor.F16ToF32(h)
			}
			w = unsafe.Add(w, a.step)
		}
		putGo(a, r, &acc)
	}
}

func mmGoF32(a *mmArgs) {
	for r := range a.rows {
		var acc [lanes]float32
		w := a.w
		for _, x := range unsafe.Slice((*float32)(unsafe.Add(a.x, r*a.ldx)), a.k) {
			p := (*[lanes]float32)(w)
			for n := range acc {
				acc[n] += x * p[n]
			}
			w = unsafe.Add(w, a.step)
		}
		putGo(a, r, &acc)
	}
}

func mmGoI8(a *mmArgs) {
	for r := range a.rows {
		var acc [lanes]float32
		w := a.w
		for _, x := range unsafe.Slice((*float32)(unsafe.Add(a.x, r*a.ldx)), a.k) {
			for n, v := range (*[lanes]int8)(w) {
				acc[n] += x * float32(v)
			}
			w = unsafe.Add(w, a.step)
		}
		putGo(a, r, &acc)
	}
}

func putGo(a *mmArgs, r uintptr, acc *[lanes]float32) {
	d := (*[lanes]float32)(unsafe.Add(a.dst, r*a.ldd))
	if a.add == 0 {
		*d = *acc
		return
	}
	for n := range acc {
		d[n] += acc[n]
	}
}

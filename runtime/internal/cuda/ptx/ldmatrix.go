package ptx

// matrixCount is the number of 8×8 matrices of ldmatrix and stmatrix.
func (b *builder) matrixCount() int {
	switch {
	case b.s.has("x1"):
		return 1
	case b.s.has("x2"):
		return 2
	case b.s.has("x4"):
		return 4
	}
	return 0
}

// matrixRows reads or writes rows of 16 bytes: lanes 8i to 8i+7 give the row
// addresses of matrix i. copyRow gets the lane and its row.
func (r *memRef) matrixRows(w *warp, n int, copyRow func(l int, p *[8]uint16)) {
	r.addrs(w, allLanes)
	m := uint32(1)<<(8*n) - 1
	if n == 4 {
		m = allLanes
	}
	for m != 0 {
		win, hit := r.locate(w, m)
		if hit == 0 {
			return
		}
		if w.blk.watch {
			if r.write {
				w.observeStore(r, win, hit, 8, nil)
			} else {
				w.observe(r, win, hit)
			}
			if w.fault != nil {
				return
			}
		}
		for left := hit; left != 0; {
			l := lane(&left)
			copyRow(l, (*[8]uint16)(win.at(w.addr[l])))
		}
		m &^= hit
	}
}

// buildLdmatrix loads 8×8 matrices of 16-bit elements: lane l gets row l/4,
// columns 2(l%4) and one on; transposed, column l/4 and those rows.
func buildLdmatrix(b *builder) exec {
	b.args(2)
	s := b.s
	n, trans := b.matrixCount(), s.has("trans")
	if n == 0 || !s.has("m8n8") || !s.has("b16") {
		return nil
	}
	parts := b.elements(b.arg(0), n, func(o *operand) part { return part{b.dstOp(o, tB32), false} })
	sp := b.memSpace()
	r := b.memRef(b.arg(1), sp, 16, accessLoad)
	b.in.kind, b.in.bytes = kSync, 4*n // each lane receives a register a matrix
	return func(w *warp, m uint32) {
		if m != allLanes {
			w.fail(FaultDivergence, lowest(m), "lanes %#x of the warp do not execute ldmatrix, which needs all", ^m)
			return
		}
		var mat [32][8]uint16 // rows of all matrices
		r.matrixRows(w, n, func(l int, p *[8]uint16) { mat[l&31] = *p })
		if w.fault != nil {
			return
		}
		for i, d := range parts {
			out, rows := view[uint32](w, d.off), mat[8*i:8*i+8]
			for l := range out {
				g, t := l>>2, 2*(l&3)
				if trans {
					out[l] = uint32(rows[t][g]) | uint32(rows[t+1][g])<<16
				} else {
					out[l] = uint32(rows[g][t]) | uint32(rows[g][t+1])<<16
				}
			}
		}
	}
}

// buildStmatrix is the inverse of ldmatrix (sm_90).
func buildStmatrix(b *builder) exec {
	b.args(2)
	s := b.s
	n, trans := b.matrixCount(), s.has("trans")
	if n == 0 || !s.has("m8n8") || !s.has("b16") {
		return nil
	}
	parts := b.elements(b.arg(1), n, func(o *operand) part { return part{b.srcOp(o, tB32), false} })
	r := b.memRef(b.arg(0), b.memSpace(), 16, accessStore)
	b.in.kind, b.in.bytes = kSync, 4*n
	return func(w *warp, m uint32) {
		if m != allLanes {
			w.fail(FaultDivergence, lowest(m), "lanes %#x of the warp do not execute stmatrix, which needs all", ^m)
			return
		}
		var mat [32][8]uint16
		for i, d := range parts {
			in, rows := view[uint32](w, d.off), mat[8*i:8*i+8]
			for l := range in {
				g, t := l>>2, 2*(l&3)
				if trans {
					rows[t][g], rows[t+1][g] = uint16(in[l]), uint16(in[l]>>16)
				} else {
					rows[g][t], rows[g][t+1] = uint16(in[l]), uint16(in[l]>>16)
				}
			}
		}
		r.matrixRows(w, n, func(l int, p *[8]uint16) { *p = mat[l&31] })
	}
}

// buildMovmatrix transposes an 8×8 matrix in registers.
func buildMovmatrix(b *builder) exec {
	b.args(2)
	if !b.s.has("trans") || !b.s.has("m8n8") {
		return nil
	}
	d, src := b.dst(0, tB32), b.src(1, tB32)
	b.in.kind = kSync
	return func(w *warp, m uint32) {
		if m != allLanes {
			w.fail(FaultDivergence, lowest(m), "lanes %#x of the warp do not execute movmatrix, which needs all", ^m)
			return
		}
		var mat [8][8]uint16
		for l, v := range view[uint32](w, src) {
			mat[l>>2][2*(l&3)], mat[l>>2][2*(l&3)+1] = uint16(v), uint16(v>>16)
		}
		out := view[uint32](w, d)
		for l := range out {
			g, t := l>>2, 2*(l&3)
			out[l] = uint32(mat[t][g]) | uint32(mat[t+1][g])<<16
		}
	}
}

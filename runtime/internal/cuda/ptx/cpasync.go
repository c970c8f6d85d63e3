package ptx

import "unsafe"

// asyncCopy is a cp.async of one warp: its data was read from global memory,
// and lands in shared memory when a lane waits for its group.
type asyncCopy struct {
	mask  uint32 // lanes whose copy has not landed
	size  int
	dst   [lanesPerWarp]uint32
	data  [lanesPerWarp][16]byte
	group [lanesPerWarp]uint32
}

// asyncCopies are a warp's copies in flight, oldest first.
type asyncCopies struct {
	pending   []*asyncCopy
	spare     []*asyncCopy
	committed [lanesPerWarp]uint32 // groups each lane has committed
}

func (a *asyncCopies) reset() {
	a.spare = append(a.spare, a.pending...)
	a.pending = a.pending[:0]
	a.committed = [lanesPerWarp]uint32{}
}

func (a *asyncCopies) add() *asyncCopy {
	var c *asyncCopy
	if n := len(a.spare); n > 0 {
		c, a.spare = a.spare[n-1], a.spare[:n-1]
	} else {
		c = new(asyncCopy)
	}
	a.pending = append(a.pending, c)
	return c
}

// land completes, for the lanes of m, the copies of all groups but each lane's
// latest keep ones; with uncommitted, also those that belong to no group yet.
func (w *warp) land(m uint32, keep uint32, uncommitted bool) {
	a := &w.async
	left := a.pending[:0]
	for _, c := range a.pending {
		for lanes := c.mask & m; lanes != 0; {
			l := lane(&lanes)
			if !uncommitted && c.group[l]+keep >= a.committed[l] {
				continue
			}
			copy(w.blk.shared[c.dst[l]:], c.data[l][:c.size])
			if s := w.blk.shadow; s != nil {
				s.landed(w, l, uint64(c.dst[l]), c.size)
			}
			c.mask &^= 1 << l
		}
		if c.mask == 0 {
			a.spare = append(a.spare, c)
		} else {
			left = append(left, c)
		}
	}
	a.pending = left
}

// buildCp is cp.async with its groups. (cp.async.bulk and the mbarrier forms
// belong to sm_90.)
func buildCp(b *builder) exec {
	s := b.s
	if !s.has("async") || s.has("bulk") || s.has("mbarrier") {
		return nil
	}
	switch {
	case s.has("commit_group"):
		b.args(0)
		return func(w *warp, m uint32) {
			for m != 0 {
				w.async.committed[lane(&m)]++
			}
		}
	case s.has("wait_all"):
		b.args(0)
		b.in.kind = kMem
		return func(w *warp, m uint32) { w.land(m, 0, true) }
	case s.has("wait_group"):
		b.args(1)
		n := b.constImm(0)
		b.in.kind = kMem
		return func(w *warp, m uint32) { w.land(m, uint32(n), false) }
	}
	return b.asyncCopy()
}

func (b *builder) asyncCopy() exec {
	args := b.s.args
	if len(args) < 3 {
		return nil
	}
	size := int(b.constImm(2))
	if size != 4 && size != 8 && size != 16 || b.s.has("cg") && size != 16 {
		b.fail("cp.async copies 4, 8 or 16 bytes (with .cg 16), not %d", size)
	}
	// Optional: how many bytes to read (the rest is zero), or a predicate to
	// read none; then a cache policy.
	var limit part
	limited, ignore, inv := false, -1, uint32(0)
	if len(args) > 3 {
		switch o := &args[3]; {
		case o.kind == opReg && o.reg.typ == tPred:
			ignore, inv = b.pred(o)
		case !(o.kind == opReg && o.reg.typ.wide()):
			limited = true
			limit.off, limit.wide = b.anySrc(o, tU32)
		}
	}
	src := b.memRef(&args[1], spGlobal, size, accessLoad)
	dst := b.memRef(&args[0], spShared, size, accessStore)
	tail := *src
	tail.size = 1
	b.in.access, b.in.space, b.in.mem = accessStore, spShared, src.num
	return func(w *warp, m uint32) {
		dst.addrs(w, m)
		if _, hit := dst.locate(w, m); hit == 0 {
			return
		}
		to := w.addr
		c := w.async.add()
		c.mask, c.size = m, size
		var bytes [lanesPerWarp]int
		read := uint32(0)
		for left := m; left != 0; {
			l := lane(&left)
			c.dst[l], c.group[l] = uint32(to[l]), w.async.committed[l]
			c.data[l] = [16]byte{}
			n := size
			if limited {
				n = int(min(limit.get(w, l), uint64(size)))
			}
			if ignore >= 0 && (w.preds[ignore]^inv)>>l&1 != 0 {
				n = 0
			}
			bytes[l] = n
			read |= bit(n > 0) << l
		}
		src.addrs(w, m)
		if read = w.readPart(c, tail, &bytes, read, size); w.fault != nil {
			return
		}
		for read != 0 {
			win, hit := src.locate(w, read)
			if hit == 0 {
				return
			}
			if w.blk.watch {
				if w.observe(src, win, hit); w.fault != nil {
					return
				}
			}
			for left := hit; left != 0; {
				l := lane(&left)
				copy(c.data[l][:bytes[l]], unsafe.Slice((*byte)(win.at(w.addr[l])), bytes[l]))
			}
			read &^= hit
		}
		if s := w.blk.shadow; s != nil {
			for left := m; left != 0; {
				l := lane(&left)
				if s.store(w, l, to[l], size, false, true, false); w.fault != nil {
					return
				}
			}
		}
	}
}

// readPart copies for the lanes that read less than the whole size, of which
// only that part need exist, and returns the other lanes.
func (w *warp) readPart(c *asyncCopy, one memRef, bytes *[lanesPerWarp]int, read uint32, size int) uint32 {
	for left := read; left != 0; {
		l := lane(&left)
		if bytes[l] == size {
			continue
		}
		addr := w.addr[l]
		if addr&uint64(size-1) != 0 {
			w.failAt(FaultMisaligned, l, spGlobal, addr, "access of %d bytes", size)
			return 0
		}
		for i := range bytes[l] {
			w.addr[l] = addr + uint64(i)
			win, hit := one.locate(w, 1<<l)
			if hit == 0 {
				return 0
			}
			c.data[l][i] = *(*byte)(win.at(w.addr[l]))
		}
		read &^= 1 << l
	}
	return read
}

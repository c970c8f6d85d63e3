package ptx

// specials gives the value of a special register for a thread. Values that
// depend on the block are set anew for each.
var specials = map[string]func(w *warp, l int) uint64{
	"%tid.x":              func(w *warp, l int) uint64 { return w.tid(l, 0) },
	"%tid.y":              func(w *warp, l int) uint64 { return w.tid(l, 1) },
	"%tid.z":              func(w *warp, l int) uint64 { return w.tid(l, 2) },
	"%ntid.x":             func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Block[0]) },
	"%ntid.y":             func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Block[1]) },
	"%ntid.z":             func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Block[2]) },
	"%ctaid.x":            func(w *warp, _ int) uint64 { return uint64(w.blk.idx[0]) },
	"%ctaid.y":            func(w *warp, _ int) uint64 { return uint64(w.blk.idx[1]) },
	"%ctaid.z":            func(w *warp, _ int) uint64 { return uint64(w.blk.idx[2]) },
	"%nctaid.x":           func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Grid[0]) },
	"%nctaid.y":           func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Grid[1]) },
	"%nctaid.z":           func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.Grid[2]) },
	"%laneid":             func(_ *warp, l int) uint64 { return uint64(l) },
	"%warpid":             func(w *warp, _ int) uint64 { return uint64(w.num) },
	"%nwarpid":            func(w *warp, _ int) uint64 { return uint64(len(w.blk.all)) },
	"%smid":               func(*warp, int) uint64 { return 0 },
	"%nsmid":              func(*warp, int) uint64 { return 1 },
	"%gridid":             func(*warp, int) uint64 { return 0 },
	"%lanemask_eq":        func(_ *warp, l int) uint64 { return 1 << l },
	"%lanemask_lt":        func(_ *warp, l int) uint64 { return 1<<l - 1 },
	"%lanemask_le":        func(_ *warp, l int) uint64 { return 2<<l - 1 },
	"%lanemask_gt":        func(_ *warp, l int) uint64 { return allLanes &^ (2<<l - 1) },
	"%lanemask_ge":        func(_ *warp, l int) uint64 { return allLanes &^ (1<<l - 1) },
	"%dynamic_smem_size":  func(w *warp, _ int) uint64 { return uint64(w.blk.l.cfg.SharedBytes) },
	"%total_smem_size":    func(w *warp, _ int) uint64 { return uint64(len(w.blk.shared)) },
	"%aggr_smem_size":     func(w *warp, _ int) uint64 { return uint64(len(w.blk.shared)) },
	"%reserved_smem_size": func(*warp, int) uint64 { return 0 },
}

// clocks are the special registers that change while a thread runs, and whether
// they are 64 bits wide.
var clocks = map[string]bool{"%clock": false, "%clock64": true, "%globaltimer": true, "%clock_hi": false, "%globaltimer_lo": false, "%globaltimer_hi": false}

func specialRegister(name string) bool {
	_, clock := clocks[name]
	return clock || specials[name] != nil
}

func specialWide(name string) bool { return clocks[name] || name == "%gridid" }

func specialPerBlock(name string) bool {
	return name == "%ctaid.x" || name == "%ctaid.y" || name == "%ctaid.z"
}

func (w *warp) tid(l, dim int) uint64 { return uint64(w.blk.thread(w.num*lanesPerWarp + l)[dim]) }

func (w *warp) setSpecial(s specialConst) {
	f := specials[s.name]
	if f == nil {
		return // a clock: mov reads it as it goes
	}
	for l := range lanesPerWarp {
		if s.wide {
			view[uint64](w, s.off)[l] = f(w, l)
		} else {
			view[uint32](w, s.off)[l] = uint32(f(w, l))
		}
	}
}

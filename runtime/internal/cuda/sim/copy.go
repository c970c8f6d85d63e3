package sim

import (
	"fmt"
	"time"
)

// place is one end of a copy: a device address or host memory.
type place struct {
	addr uint64
	host []byte
}

func (p place) device() int {
	if p.host != nil || p.addr == 0 {
		return Host
	}
	return int(p.addr>>addrShift) - 1
}

// write is one that comes late.
type write struct {
	addr uint64
	data []byte
}

const (
	// The driver takes so much of a pageable source over at once; for more, the
	// call lasts until the stream has got there.
	stagingPiece = 64 << 10
	stagingTotal = 64 << 20
)

// CopyToDevice is cuMemcpyHtoDAsync. A pageable src may be reused when it
// returns; a pinned one is read when the copy runs.
func (g *GPU) CopyToDevice(dst uint64, src []byte, onto uint64) Result {
	return g.copy(place{addr: dst}, place{host: src}, int64(len(src)), onto, false)
}

// CopyToHost is cuMemcpyDtoHAsync. A pageable dst has the bytes when it
// returns; a pinned one when the copy has run.
func (g *GPU) CopyToHost(dst []byte, src uint64, onto uint64) Result {
	return g.copy(place{host: dst}, place{addr: src}, int64(len(dst)), onto, false)
}

// Copy is cuMemcpyDtoDAsync, and cuMemcpyPeerAsync: the devices are those of
// the addresses. Without peer access the driver stages the bytes.
func (g *GPU) Copy(dst, src uint64, n int64, onto uint64) Result {
	return g.copy(place{addr: dst}, place{addr: src}, n, onto, false)
}

// CopyToDeviceNow, CopyToHostNow and CopyNow are the calls without a stream:
// they use the null stream and return when the copy has run.
func (g *GPU) CopyToDeviceNow(dst uint64, src []byte) Result {
	return g.copy(place{addr: dst}, place{host: src}, int64(len(src)), 0, true)
}

// CopyToHostNow is cuMemcpyDtoH.
func (g *GPU) CopyToHostNow(dst []byte, src uint64) Result {
	return g.copy(place{host: dst}, place{addr: src}, int64(len(dst)), 0, true)
}

// CopyNow is cuMemcpyDtoD and cuMemcpyPeer.
func (g *GPU) CopyNow(dst, src uint64, n int64) Result {
	return g.copy(place{addr: dst}, place{addr: src}, n, 0, true)
}

func (g *GPU) copy(dst, src place, n int64, onto uint64, now bool) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.enter(onto)
	if r != Success {
		return r
	}
	if now {
		if r := g.unsafeInCapture(); r != Success {
			return r
		}
	}
	if n == 0 {
		return Success
	}
	for _, p := range []place{dst, src} {
		if p.host != nil {
			continue
		}
		if _, _, ok := m.span(p.addr, n); !ok {
			m.report(g, InvalidValue, fmt.Sprintf("copy of %d bytes: %s", n, m.describe(p.addr)))
			return InvalidValue
		}
	}
	w := m.newOp(opCopy)
	w.dst, w.src, w.n, w.from, w.to = dst, src, n, src.device(), dst.device()
	w.path = g.way(w.from, w.to)
	for _, a := range m.strikes(w.path, w.from, w.to, n, s, true) {
		code := a.Code
		if code == Success {
			code = Unknown
		}
		if !code.fatal() {
			m.release(w)
			return code
		}
		w.failing = a
	}
	pageable := src.host != nil && !m.host.covers(src.host) || dst.host != nil && !m.host.covers(dst.host)
	if pageable && s.capture != nil {
		s.capture.spoil()
		m.release(w)
		return CaptureUnsupported
	}
	small := src.host != nil && n <= stagingPiece && m.staged+n <= stagingTotal
	if pageable && small {
		w.staged = append([]byte(nil), src.host...)
		w.src.host = w.staged
		m.staged += n
	}
	m.push(s, w)
	if now || pageable && !small {
		m.stats(g).Syncs++
		return m.sync(s)
	}
	return Success
}

// way says how bytes get from one end to the other; a stream's device needs
// access to the memory of others.
func (g *GPU) way(from, to int) Path {
	switch {
	case from == Host:
		return Upload
	case to == Host:
		return Download
	case from == to:
		return ""
	}
	for _, d := range []int{from, to} {
		if d != g.index && g.peers&(1<<d) == 0 {
			return DriverStaged
		}
	}
	return PeerCopy
}

// runCopy moves the bytes. False: the stream got no further.
func (m *Machine) runCopy(s *stream, w *op) bool {
	g := s.g
	if w.failing != nil {
		code := w.failing.Code
		if code == Success {
			code = Unknown
		}
		m.fail(g, code, fmt.Sprintf("copy of %d bytes from %d to %d: injected", w.n, w.from, w.to))
		return false
	}
	var dst, src []byte
	var into *alloc
	for _, e := range []struct {
		p   place
		buf *[]byte
	}{{w.dst, &dst}, {w.src, &src}} {
		if e.p.host != nil {
			*e.buf = e.p.host
			continue
		}
		a, off, ok := m.span(e.p.addr, w.n)
		if !ok {
			m.fail(g, IllegalAddress, fmt.Sprintf("copy of %d bytes: %s", w.n, m.describe(e.p.addr)))
			return false
		}
		*e.buf = a.data[off : off+w.n]
		if e.buf == &dst {
			into = a
			a.mark(off, w.n)
			if w.from == Host && off <= a.uploaded {
				a.uploaded = max(a.uploaded, off+w.n)
			}
		}
	}
	factor, broken := 1.0, (*armed)(nil)
	for _, a := range m.strikes(w.path, w.from, w.to, w.n, s, false) {
		switch {
		case a.Kind == Hang:
			s.hung = true
		case a.Kind == Slow:
			factor *= a.factor()
		case broken == nil:
			broken = a
		}
	}
	if s.hung {
		return false
	}
	link := [2]int{w.from, w.to}
	for _, late := range m.late[link] {
		if a, off, ok := m.span(late.addr, int64(len(late.data))); ok {
			copy(a.data[off:], late.data)
		}
	}
	delete(m.late, link)
	if broken == nil {
		copy(dst, src)
	} else {
		var hold func([]byte)
		if into != nil {
			hold = func(b []byte) { m.late[link] = append(m.late[link], write{w.dst.addr, b}) }
		}
		m.deliver(broken, dst, src, hold)
	}
	m.timeCopy(s, w, factor)
	return true
}

func (a *armed) factor() float64 {
	if a.Factor == 0 {
		return 1000
	}
	return a.Factor
}

// timeCopy books a copy's modelled time, and counts it.
func (m *Machine) timeCopy(s *stream, w *op, factor float64) {
	g := s.g
	what := Span{Name: string(w.path), Peer: w.to, Bytes: w.n}
	took := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	bytes := float64(w.n)
	switch w.path {
	case Upload:
		d := m.gpus[w.to]
		m.occupy(s, took(hostLatency+seconds(bytes/d.rates.host)), what, d, engineIn, nil)
		m.stats(d).UploadBytes += w.n
	case Download:
		d := m.gpus[w.from]
		m.occupy(s, took(hostLatency+seconds(bytes/d.rates.host)), what, d, engineOut, nil)
		m.stats(d).DownloadBytes += w.n
	case "":
		what.Name = "copy"
		m.occupy(s, took(launchTime+seconds(2*bytes/g.rates.bytes)), what, g, engineOut, nil)
		m.stats(g).LocalBytes += w.n
	default:
		src, dst := m.gpus[w.from], m.gpus[w.to]
		m.occupy(s, took(m.linkTime(w.from, w.to, w.n, w.path == PeerCopy)), what, src, engineOut, dst)
		m.stats(src).PeerOutBytes += w.n
		m.stats(dst).PeerInBytes += w.n
	}
	m.stats(g).Copies++
}

// Set is cuMemsetD8Async, D16 and D32: count values of width bytes.
func (g *GPU) Set(dst uint64, value uint32, width int, count int64, onto uint64, now bool) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.enter(onto)
	if r != Success {
		return r
	}
	if count == 0 {
		return Success
	}
	if width != 1 && width != 2 && width != 4 || dst%uint64(width) != 0 || count < 0 || count > 1<<44 {
		return InvalidValue
	}
	n := count * int64(width)
	if _, _, ok := m.span(dst, n); !ok {
		m.report(g, InvalidValue, fmt.Sprintf("set of %d bytes: %s", n, m.describe(dst)))
		return InvalidValue
	}
	if d := (place{addr: dst}).device(); d != g.index && g.peers&(1<<d) == 0 {
		return InvalidValue
	}
	w := m.newOp(opSet)
	w.dst.addr, w.n, w.value, w.width = dst, n, value, width
	m.push(s, w)
	if now {
		m.stats(g).Syncs++
		return m.sync(s)
	}
	return Success
}

func (m *Machine) runSet(s *stream, w *op) bool {
	g := s.g
	a, off, ok := m.span(w.dst.addr, w.n)
	if !ok {
		m.fail(g, IllegalAddress, fmt.Sprintf("set of %d bytes: %s", w.n, m.describe(w.dst.addr)))
		return false
	}
	b := a.data[off : off+w.n]
	if w.value == 0 {
		clear(b)
	} else {
		for i := range b {
			b[i] = byte(w.value >> (8 * (i % w.width)))
		}
	}
	a.mark(off, w.n)
	m.stats(g).Sets++
	m.occupy(s, launchTime+seconds(float64(w.n)/g.rates.bytes), Span{Name: "set", Peer: g.index, Bytes: w.n}, g, engineCompute, nil)
	return true
}

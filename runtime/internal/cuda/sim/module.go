package sim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"infer/runtime/internal/cuda/ptx"
)

// parsed is a module's text, read once a process.
type parsed struct {
	once sync.Once
	mod  *ptx.Module
	err  error
}

var parsedTexts sync.Map // of the text's hash

func parse(text []byte) (*ptx.Module, error) {
	text, _, _ = bytes.Cut(text, []byte{0})
	v, _ := parsedTexts.LoadOrStore(sha256.Sum256(text), &parsed{})
	p := v.(*parsed)
	p.once.Do(func() { p.mod, p.err = ptx.Parse(string(text)) })
	return p.mod, p.err
}

// module is one loaded on a device.
type module struct {
	g       *GPU
	mod     *ptx.Module
	symbols map[string]uint64 // variables in device memory
	funcs   map[string]uint64
}

// Function is a kernel of a loaded module.
type Function struct {
	g       *GPU
	mod     *ptx.Module
	kernel  *ptx.Kernel
	name    string
	symbols map[string]uint64
	dynamic int // dynamic shared memory it may have
}

// newestPTX is the newest PTX version the driver of a machine knows: CUDA
// 13.0 brought 9.0.
func (m *Machine) newestPTX() int {
	api := m.DriverAPI()
	return (api/1000-4)*10 + api%1000/10
}

// ptxVersion makes 78 of "7.8".
func ptxVersion(s string) (int, bool) {
	major, minor, _ := strings.Cut(s, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return a*10 + b, err1 == nil && err2 == nil
}

// DriverAPI is what cuDriverGetVersion answers.
func (m *Machine) DriverAPI() int {
	if m.spec.Driver.API > 0 {
		return m.spec.Driver.API
	}
	return 13000
}

// accepts says why the driver's compiler would refuse a module for the device.
func (g *GPU) accepts(mod *ptx.Module) (string, Result) {
	if v, ok := ptxVersion(mod.Version); !ok || v > g.m.newestPTX() {
		return fmt.Sprintf("ptxas fatal: unsupported .version %s; current version is '%d.%d'", mod.Version, g.m.newestPTX()/10, g.m.newestPTX()%10), UnsupportedPTXVersion
	}
	generation, variant, _ := capability(g.capability)
	own := generation*10 + variant
	target := strings.TrimPrefix(mod.Target, "sm_")
	plain := strings.TrimRight(target, "af")
	n, err := strconv.Atoi(plain)
	fits := err == nil && n <= own // plain PTX runs on what came later
	switch strings.TrimPrefix(target, plain) {
	case "a":
		fits = n == own
	case "f":
		fits = fits && n/10 == generation
	}
	if !fits {
		return fmt.Sprintf("ptxas fatal: .target %s does not run on sm_%d", mod.Target, own), InvalidPTX
	}
	return "", Success
}

// ModuleLoad is cuModuleLoadData for PTX text; log is what the compiler says.
func (g *GPU) ModuleLoad(text []byte) (handle uint64, log string, r Result) {
	mod, err := parse(text)
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, "", r
	}
	if err != nil {
		return 0, "ptxas fatal: " + err.Error(), InvalidPTX
	}
	if log, r := g.accepts(mod); r != Success {
		return 0, log, r
	}
	x := &module{g: g, mod: mod, symbols: map[string]uint64{}, funcs: map[string]uint64{}}
	for _, v := range mod.Variables() {
		if v.Size == 0 {
			continue
		}
		a, err := g.mem.add(int64(v.Size), false)
		if err != nil || g.mem.used > g.limit {
			return 0, fmt.Sprintf("variable %s of %d bytes", v.Name, v.Size), OutOfMemory
		}
		copy(a.data, v.Init)
		x.symbols[v.Name] = a.base
	}
	h := m.handle()
	m.modules[h] = x
	return h, "", Success
}

// ModuleUnload is cuModuleUnload.
func (g *GPU) ModuleUnload(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	x := m.modules[handle]
	if x == nil || x.g != g {
		return InvalidHandle
	}
	if r := m.drain(g); r != Success {
		return r
	}
	for _, f := range x.funcs {
		delete(m.funcs, f)
	}
	for _, base := range x.symbols {
		g.mem.remove(base)
	}
	delete(m.modules, handle)
	return Success
}

// ModuleFunction is cuModuleGetFunction.
func (g *GPU) ModuleFunction(handle uint64, name string) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	x := m.modules[handle]
	if x == nil || x.g != g {
		return 0, InvalidHandle
	}
	if h, ok := x.funcs[name]; ok {
		return h, Success
	}
	k := x.mod.Kernel(name)
	if k == nil {
		return 0, NotFound
	}
	h := m.handle()
	x.funcs[name] = h
	m.funcs[h] = &Function{g: g, mod: x.mod, kernel: k, name: name, symbols: x.symbols, dynamic: max(0, defaultShared-k.SharedBytes())}
	return h, Success
}

// ModuleVariable is cuModuleGetGlobal.
func (g *GPU) ModuleVariable(handle uint64, name string) (addr uint64, n int64, r Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, 0, r
	}
	x := m.modules[handle]
	if x == nil || x.g != g {
		return 0, 0, InvalidHandle
	}
	addr, ok := x.symbols[name]
	if !ok {
		return 0, 0, NotFound
	}
	return addr, g.mem.find(addr).size, Success
}

// function finds one of the device by handle.
func (g *GPU) function(handle uint64) (*Function, Result) {
	if r := g.state(); r != Success {
		return nil, r
	}
	f := g.m.funcs[handle]
	if f == nil || f.g != g {
		return nil, InvalidHandle
	}
	return f, Success
}

// Attributes of functions, by the driver's numbers.
const (
	funcMaxThreads    = 0
	funcSharedBytes   = 1
	funcConstBytes    = 2
	funcLocalBytes    = 3
	funcRegisters     = 4
	funcPTXVersion    = 5
	funcBinaryVersion = 6
	funcCacheModeCA   = 7
	funcMaxDynamic    = 8
	funcCarveout      = 9
)

// FuncAttribute is cuFuncGetAttribute. No compiler gave the kernel registers:
// it answers 32.
func (g *GPU) FuncAttribute(handle uint64, attribute int) (int, Result) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	f, r := g.function(handle)
	if r != Success {
		return 0, r
	}
	switch attribute {
	case funcMaxThreads:
		if n := f.kernel.MaxThreads(); n > 0 {
			return n, Success
		}
		return maxThreads, Success
	case funcSharedBytes:
		return f.kernel.SharedBytes(), Success
	case funcLocalBytes:
		return f.kernel.LocalBytes(), Success
	case funcRegisters:
		return 32, Success
	case funcPTXVersion:
		v, _ := ptxVersion(f.mod.Version)
		return v, Success
	case funcBinaryVersion:
		generation, variant, _ := capability(g.capability)
		return generation*10 + variant, Success
	case funcMaxDynamic:
		return f.dynamic, Success
	case funcConstBytes, funcCacheModeCA:
		return 0, Success
	case funcCarveout:
		return -1, Success
	}
	return 0, InvalidValue
}

// FuncSetAttribute is cuFuncSetAttribute.
func (g *GPU) FuncSetAttribute(handle uint64, attribute, value int) Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	f, r := g.function(handle)
	if r != Success {
		return r
	}
	switch attribute {
	case funcMaxDynamic:
		if value < 0 || value+f.kernel.SharedBytes() > g.sharedOptin() {
			return InvalidValue
		}
		f.dynamic = value
		return Success
	case funcCarveout:
		return Success
	}
	return InvalidValue
}

// Params is the layout of a function's parameters.
func (g *GPU) Params(handle uint64) ([]ptx.Param, Result) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	f, r := g.function(handle)
	if r != Success {
		return nil, r
	}
	return f.kernel.Params(), Success
}

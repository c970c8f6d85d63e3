package cpu

import (
	"fmt"
	"os"
	"runtime"

	"github.com/klauspost/cpuid/v2"

	"infer/runtime/device"
)

// path is the kernels for one set of instructions.
type path struct {
	name     string
	features string // for people
	mm       *mmSet
	vec      *vecSet
	quant    *quantSet
	pack     *packSet
	dense    *denseSet // nil: BF16 weights stay as they are
	units    *units
	exact    *path // for Precision F32, and beside GPUs; nil: this one
}

// purego is there on every machine.
var purego = path{name: "purego", features: "pure Go (no vector code for this processor)", mm: mmGo(), vec: &vecGo, quant: &quantGo, pack: &packGo, units: &unitsGo}

// rounds tells whether activations become bfloat16 for products with BF16.
func (p *path) rounds() bool {
	return p.mm.formatOf(&weight{format: fmtBF16, cols: groupLen}) == fmtDots
}

// best is the first path that multiplies as it should. The kernels of many
// processors were never run on one: what is wrong there must not become tokens.
func best(have []path) *path {
	why := ""
	for i := range have {
		p := &have[i]
		err := p.check()
		if err == nil {
			p.features += why
			return p
		}
		why += fmt.Sprintf(" (%v)", err)
	}
	panic("cpu: no path is left") // the last is what others are compared with
}

// choose finds the path by name, or the best one there is.
func choose(force string) (*path, error) {
	have := paths()
	if force == "" {
		return best(have), nil
	}
	names := ""
	for i := range have {
		if p := &have[i]; p.name == force {
			if err := p.check(); err != nil {
				return nil, fmt.Errorf("open the CPU: INFER_CPU=%s: %w", force, err)
			}
			return p, nil
		}
		names += " " + have[i].name
	}
	return nil, fmt.Errorf("open the CPU: INFER_CPU=%s, but %s can do%s: %w", force, processor(), names, device.ErrNotSupported)
}

// Features describes the kernels that Open would choose, for people: like
// "avx2+fma+f16c", or why it would not open.
func Features() string {
	p, err := choose(os.Getenv("INFER_CPU"))
	if err != nil {
		return err.Error()
	}
	return p.features
}

// processor is the processor's name for itself.
func processor() string {
	if n := cpuid.CPU.BrandName; n != "" {
		return n
	}
	return runtime.GOARCH
}

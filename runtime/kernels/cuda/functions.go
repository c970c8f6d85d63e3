package cuda

import (
	"fmt"
	"strings"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// function is one kernel on one device; it is compiled when it is first
// launched. Only the owner touches what follows the names.
type function struct {
	module, name string

	handle driver.Function
	ready  bool
}

// resolve compiles the kernel if that has not been done.
func (f *function) resolve(t *driver.Thread) error {
	if f.ready {
		return nil
	}
	text := Module(f.module)
	one, err := extract(text, f.name)
	if err != nil {
		return fmt.Errorf("module %s: %w", f.module, err)
	}
	m, err := t.LoadModule(one)
	if err != nil {
		return fmt.Errorf("compile kernel %s: %w", f.name, refused(err))
	}
	if f.handle, err = t.Function(m, f.name); err != nil {
		return fmt.Errorf("find kernel %s: %w", f.name, err)
	}
	f.ready = true
	return nil
}

// What a driver may have against a kernel, and what to do then.
var refusals = map[int]string{
	200: "", // INVALID_IMAGE
	209: "", // NO_BINARY_FOR_GPU
	218: "", // INVALID_PTX
	221: "libnvidia-ptxjitcompiler.so.1 is missing, which is a part of the driver: reinstall it; containers get it with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
	222: "the driver is too old for PTX 7.8: update it to 520 or newer",
	223: "CUDA_DISABLE_PTX_JIT is set: unset it",
}

// refused tells a driver that does not take a kernel from other errors.
func refused(err error) error {
	what, ok := refusals[driver.Code(err)]
	if !ok {
		return err
	}
	if what == "" {
		what = "update the driver, or report this with the output of: infer doctor --json"
	}
	return fmt.Errorf("%w: %w (%s)", device.ErrRefused, err, what)
}

// extract cuts the module down to one kernel: the driver compiles what it is
// given, and a module holds a kernel for every pair of types.
func extract(text, kernel string) ([]byte, error) {
	out := make([]byte, 0, len(text)/8)
	found, in, skip := false, false, false
	for line := range strings.Lines(text) {
		if !in && strings.Contains(line, ".entry ") {
			in = true
			skip = !strings.Contains(line, ".entry "+kernel+"(")
			found = found || !skip
		}
		if !in || !skip {
			out = append(out, line...)
		}
		if in && strings.HasPrefix(line, "}") {
			in, skip = false, false
		}
	}
	if !found {
		return nil, fmt.Errorf("there is no kernel %s", kernel)
	}
	return out, nil
}

// Indexes of the tables below.
const (
	actBF16 = iota
	actF32
	numActs
)

const numFormats = int(kernels.Q4) + 1

// Pages and activations that there are kernels for.
const (
	pairBF16BF16 = iota // K/V, then activations
	pairBF16F32
	pairF32F32
	numPairs
)

// functions are all kernels of a device.
type functions struct {
	embed, gemv, gemm [numFormats][numActs]*function
	norm, gated       [numActs]*function
	combine           [numActs]*function
	rotary, attention [numPairs]*function
	split, prefill    map[int]*[numActs]*function // by head dim

	expertsGemv, expertsGemm [numFormats][numActs]*function
	expertsSum               [numActs]*function
	route, group             *function

	argmax, digest, fill, compare, copy, gather *function
}

// tensorCoreDims are the head dims that have kernels on tensor cores.
var tensorCoreDims = []int{32, 64, 80, 96, 128, 256}

func newFunctions() *functions {
	f := &functions{split: map[int]*[numActs]*function{}, prefill: map[int]*[numActs]*function{}}
	acts := [numActs]string{actBF16: "bf16", actF32: "f32"}
	for format := kernels.F32; int(format) < numFormats; format++ {
		for a, act := range acts {
			name := fmt.Sprintf("_%v_%s", format, act)
			f.embed[format][a] = &function{module: "rows", name: "embed" + name}
			f.gemv[format][a] = &function{module: "gemv", name: "gemv" + name}
			f.gemm[format][a] = &function{module: "gemm", name: "gemm" + name}
			f.expertsGemv[format][a] = &function{module: "moe", name: "moe_gemv" + name}
			f.expertsGemm[format][a] = &function{module: "moe", name: "moe_gemm" + name}
		}
	}
	for a, act := range acts {
		f.norm[a] = &function{module: "rows", name: "rmsnorm_" + act}
		f.gated[a] = &function{module: "rows", name: "gated_" + act}
		f.expertsSum[a] = &function{module: "moe", name: "moe_sum_" + act}
		f.combine[a] = &function{module: "attention", name: "attn_combine_" + act}
	}
	for p, name := range [numPairs]string{"bf16_bf16", "bf16_f32", "f32_f32"} {
		f.rotary[p] = &function{module: "rotary", name: "rotary_" + name}
		f.attention[p] = &function{module: "attention", name: "attn_any_" + name}
	}
	for _, d := range tensorCoreDims {
		f.split[d], f.prefill[d] = new([numActs]*function), new([numActs]*function)
		for a, act := range acts {
			f.split[d][a] = &function{module: "attention", name: fmt.Sprintf("attn_split_%d_%s", d, act)}
			f.prefill[d][a] = &function{module: "attention", name: fmt.Sprintf("attn_prefill_%d_%s", d, act)}
		}
	}
	f.argmax = &function{module: "rows", name: "argmax"}
	f.route = &function{module: "moe", name: "moe_route"}
	f.group = &function{module: "moe", name: "moe_group"}
	f.digest = &function{module: "bytes", name: "digest"}
	f.fill = &function{module: "bytes", name: "fill"}
	f.compare = &function{module: "bytes", name: "compare"}
	f.copy = &function{module: "bytes", name: "copy"}
	f.gather = &function{module: "bytes", name: "gather"}
	return f
}

// actIndex of an activation type.
func actIndex(d tensor.DType) int {
	if d == tensor.BF16 {
		return actBF16
	}
	return actF32
}

// pairIndex of K/V and activation types, which a Backend has checked.
func pairIndex(kv, act tensor.DType) int {
	switch {
	case kv == tensor.F32:
		return pairF32F32
	case act == tensor.BF16:
		return pairBF16BF16
	}
	return pairBF16F32
}

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels"
	"infer/runtime/transfer"
)

// computeFlags are shared by every command that computes: serve, run, chat,
// bench, score.
type computeFlags struct {
	precision string
	quantize  string
	kvCache   string
	deviceMap string
	simulate  string
	maxMemory string
	reserve   string
	gpuLayers int
	ctx       int
	maxSeqs   int
	threads   int
	speculate string
	mmap      bool
	transfer  transferFlags
}

// register adds the flags; maxSeqs is the command's default of --max-seqs.
func (f *computeFlags) register(flags *pflag.FlagSet, maxSeqs int) {
	inGroup(flags, groupCompute, func(group *pflag.FlagSet) { f.add(group, maxSeqs) })
}

func (f *computeFlags) add(flags *pflag.FlagSet, maxSeqs int) {
	flags.StringVar(&f.precision, "precision", "auto", "f32: activations, sums and K/V cache in float32; auto: the fastest that keeps the model's answers; bf16: activations in bfloat16 on GPUs, faster still")
	flags.StringVar(&f.quantize, "quantize", "none", "format that weights are held in: none, as stored; q8 or q4, smaller and faster")
	flags.StringVar(&f.kvCache, "kv-cache", "bf16", "element type of the K/V cache: bf16, which --precision f32 makes f32; q8: half of it, on the CPU only")
	flags.StringVar(&f.deviceMap, "device-map", "auto", "where layers run: auto, cpu, cuda:0, like cuda:0=0-11,cuda:1=12-20,cpu=21-, or a JSON file of modules")
	flags.StringVar(&f.simulate, "simulate", "", "simulate GPUs instead of using this machine's: like 2xRTX-5090 or unknown-arch, or a topology file")
	flags.StringVar(&f.maxMemory, "max-memory", "", "memory limit for each device, like cuda:0=20GiB,cpu=8GiB (default: what is free)")
	flags.StringVar(&f.reserve, "reserve", "", "memory to leave free on every device, like 1GiB, or on each, like cuda:0=2GiB (default: a little, and an eighth of the CPU's)")
	flags.IntVar(&f.gpuLayers, "gpu-layers", -1, "layers that run on GPUs, the others on the CPU (default: as is fastest)")
	flags.Lookup("gpu-layers").DefValue = "0" // not printed
	flags.IntVar(&f.ctx, "ctx", 0, "context length in tokens for each sequence (default: the model's)")
	flags.IntVar(&f.maxSeqs, "max-seqs", maxSeqs, "sequences that run at once")
	flags.IntVar(&f.threads, "threads", 0, "threads that compute, at most one a processor (default: one a core)")
	flags.StringVar(&f.speculate, "speculate", "auto", "compute guesses from the text so far along with a token: auto, as many as pay, or off; the answers are the same")
	flags.StringVar(&f.transfer.verify, "verify", "always", "verify what devices get from each other: always, sampled:N (one step in N) or off")
	flags.BoolVar(&f.transfer.noPeer, "no-peer", false, "never copy from GPU to GPU directly, always by way of the host")
	flags.BoolVar(&f.transfer.sync, "sync", false, "wait for every launch and copy, so that an error names the one that failed; slow")
	flags.BoolVar(&f.mmap, "mmap", false, "map the checkpoint's files instead of reading them")
}

// check refuses impossible values before anything is opened.
func (f *computeFlags) check() error {
	oneOf := func(name, value string, allowed ...string) error {
		for _, a := range allowed {
			if value == a {
				return nil
			}
		}
		return usagef("--%s %s: want %s", name, value, strings.Join(allowed, " or "))
	}
	if err := oneOf("precision", f.precision, "auto", "f32", "bf16"); err != nil {
		return err
	}
	if _, err := transfer.ParseVerify(f.transfer.verify); err != nil {
		return usageError{err}
	}
	if err := oneOf("quantize", f.quantize, "none", "q8", "q4"); err != nil {
		return err
	}
	if err := oneOf("kv-cache", f.kvCache, "bf16", "q8"); err != nil {
		return err
	}
	if err := oneOf("speculate", f.speculate, "auto", "off"); err != nil {
		return err
	}
	switch {
	case f.gpuLayers < -1:
		return usagef("--gpu-layers %d: must not be negative", f.gpuLayers)
	case f.ctx < 0:
		return usagef("--ctx %d: must not be negative", f.ctx)
	case f.maxSeqs < 1 || f.maxSeqs > devicemap.MaxSeqs:
		return usagef("--max-seqs %d: want 1 to %d", f.maxSeqs, devicemap.MaxSeqs)
	case f.threads < 0:
		return usagef("--threads %d: must not be negative", f.threads)
	}
	if f.threads > 4*runtime.NumCPU() {
		return usagef("--threads %d: this machine has %d cores, want %d at most", f.threads, runtime.NumCPU(), 4*runtime.NumCPU())
	}
	return nil
}

// format is that of --quantize.
func (f *computeFlags) format() kernels.Format {
	switch f.quantize {
	case "q8":
		return kernels.Q8
	case "q4":
		return kernels.Q4
	}
	return kernels.AsStored
}

// samplingFlags are named as in the HTTP API.
type samplingFlags struct {
	flags *pflag.FlagSet
	s     engine.Sampling
	seed  int64
	bias  []string
}

func (f *samplingFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	inGroup(flags, groupSampling, f.add)
}

func (f *samplingFlags) add(flags *pflag.FlagSet) {
	s := &f.s
	flags.IntVar(&s.MaxTokens, "max-tokens", 0, "tokens to make at most (default: the model's, else the rest of the context)")
	flags.IntVar(&s.MinTokens, "min-tokens", 0, "tokens to make at least")
	flags.Float64Var(&s.Temperature, "temperature", 1, "0 is greedy and exactly reproducible (default: the model's)")
	flags.Float64Var(&s.TopP, "top-p", 1, "sample among the likeliest tokens that sum to this probability (default: the model's)")
	flags.IntVar(&s.TopK, "top-k", 0, "sample among this many tokens; 0: all (default: the model's)")
	flags.Float64Var(&s.MinP, "min-p", 0, "drop tokens less likely than this share of the likeliest (default: the model's)")
	flags.Float64Var(&s.Repetition, "repetition-penalty", 1, "above 1 makes tokens already in the text less likely (default: the model's)")
	flags.Float64Var(&s.Presence, "presence-penalty", 0, "−2 to 2; above 0 makes tokens already made less likely")
	flags.Float64Var(&s.Frequency, "frequency-penalty", 0, "−2 to 2; the same for each time they were made")
	flags.StringArrayVar(&s.Stop, "stop", nil, "end before this text (can be repeated)")
	flags.StringArrayVar(&f.bias, "logit-bias", nil, "ID=VALUE added to that token's logit (can be repeated)")
	flags.BoolVar(&s.IgnoreEOS, "ignore-eos", false, "go on after the model's own end")
	flags.Int64Var(&f.seed, "seed", 0, "same seed, same answer (default: a new one each time)")
	// What is not given comes from the model, so that no number is shown as the default.
	for _, name := range []string{"temperature", "top-p", "repetition-penalty"} {
		flags.Lookup(name).DefValue = "0" // not printed
	}
}

// resolve gives the sampling asked for, with the model's own defaults where a
// flag was not given.
func (f *samplingFlags) resolve(defaults engine.Sampling) (engine.Sampling, error) {
	s := f.s
	given := f.flags.Changed
	for name, keep := range map[string]func(){
		"temperature":        func() { s.Temperature = defaults.Temperature },
		"top-p":              func() { s.TopP = defaults.TopP },
		"top-k":              func() { s.TopK = defaults.TopK },
		"min-p":              func() { s.MinP = defaults.MinP },
		"repetition-penalty": func() { s.Repetition = defaults.Repetition },
		"max-tokens":         func() { s.MaxTokens = defaults.MaxTokens },
	} {
		if !given(name) {
			keep()
		}
	}
	s.Logprobs, s.PromptLogprobs = -1, -1
	if given("seed") {
		s.Seed = &f.seed
	}
	for _, entry := range f.bias {
		id, value, ok := strings.Cut(entry, "=")
		n, err1 := strconv.ParseInt(id, 10, 32)
		v, err2 := strconv.ParseFloat(value, 32)
		if !ok || err1 != nil || err2 != nil || n < 0 || !(v >= -100 && v <= 100) {
			return s, usagef("--logit-bias %s: want ID=VALUE with a value from -100 to 100", entry)
		}
		if s.LogitBias == nil {
			s.LogitBias = make(map[int32]float32)
		}
		s.LogitBias[int32(n)] = float32(v)
	}
	for _, c := range []struct {
		ok   bool
		what string
	}{
		{s.MaxTokens > 0 || !given("max-tokens"), "--max-tokens must be at least 1"},
		{s.MinTokens >= 0, "--min-tokens must not be negative"},
		{s.Temperature >= 0 && s.Temperature <= 2 || !given("temperature"), "--temperature must be from 0 to 2"},
		{s.TopP >= 0 && s.TopP <= 1, "--top-p must be from 0 to 1"},
		{s.TopK >= 0, "--top-k must not be negative"},
		{s.MinP >= 0 && s.MinP <= 1, "--min-p must be from 0 to 1"},
		{s.Repetition > 0, "--repetition-penalty must be above 0"},
		{s.Presence >= -2 && s.Presence <= 2, "--presence-penalty must be from -2 to 2"},
		{s.Frequency >= -2 && s.Frequency <= 2, "--frequency-penalty must be from -2 to 2"},
	} {
		if !c.ok {
			return s, usagef("%s", c.what)
		}
	}
	if given("top-p") {
		s.TopP = max(s.TopP, 1e-9) // 0 leaves the likeliest token; the engine reads 0 as off
	}
	for _, stop := range s.Stop {
		if stop == "" {
			return s, usagef("--stop must not be empty")
		}
	}
	return s, nil
}

// parseSize reads "8GiB", "500MB", "1073741824".
func parseSize(text string) (int64, error) {
	i := len(text)
	for i > 0 && (text[i-1] < '0' || text[i-1] > '9') {
		i--
	}
	n, err := strconv.ParseFloat(text[:i], 64)
	units := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	}
	unit, ok := units[strings.ToUpper(strings.TrimSpace(text[i:]))]
	if err != nil || !ok || n <= 0 || n*unit >= 1<<62 {
		return 0, fmt.Errorf("size %q: want a number with KiB, MiB, GiB or TiB", text)
	}
	return int64(n * unit), nil
}

package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"infer/runtime/kernels"
	"infer/runtime/kernels/cuda"
)

// Options of Run.
type Options struct {
	Version  string // of this program
	Device   int    // to measure
	Simulate string // a machine to simulate; "": the real one
	Progress func(what string)
}

// suiteTime bounds the kernels' tests; all together must not take five minutes.
const suiteTime = 2 * time.Minute

// Run measures one GPU. The error says that nothing could be measured at all;
// what failed in part is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{
		Schema: Schema, Version: o.Version, Started: time.Now().UTC().Truncate(time.Second), Device: fmt.Sprintf("cuda:%d", o.Device),
		Devices: []Device{}, Links: []Link{}, Kernels: []Kernel{}, Decode: []Decode{}, Faults: []string{},
	}
	defer func() { r.Seconds = time.Since(r.Started).Seconds() }()
	s, err := cuda.Open(cuda.Options{Simulate: o.Simulate})
	if err != nil {
		return nil, err
	}
	r.describe(s)
	if err := s.Close(); err != nil {
		return nil, err
	}
	if o.Device < 0 || o.Device >= len(r.Devices) {
		return nil, fmt.Errorf("there is no %s: this machine has %d GPUs", r.Device, len(r.Devices))
	}

	pattern := ""
	if o.Simulate != "" {
		pattern = "^(Digest|RMSNorm|Argmax)$"
	}
	r.part(o, "the kernels' tests", func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, suiteTime)
		defer cancel()
		r.Suite, err = suite(ctx, o.Device, pattern, o.Simulate)
		return err
	})
	for _, p := range []cuda.Precision{cuda.BF16, cuda.Auto} {
		r.part(o, "kernels in precision "+string(p), func() error { return r.measureKernels(ctx, o, p) })
	}
	shapes, d := []shape{shape1B, shape8B}, decodeOptions{prompt: 512, tokens: 129, batches: []int{1, 8, 16}}
	if o.Simulate != "" {
		shapes, d = []shape{shapeSmall}, decodeOptions{prompt: 8, tokens: 3, batches: []int{1, 2}}
	}
	for _, s := range shapes {
		for _, c := range []cuda.Options{{Precision: cuda.BF16}, {Precision: cuda.BF16, NoGraphs: true}, {Precision: cuda.Auto}} {
			if s.name == shape8B.name && (c.NoGraphs || c.Precision == cuda.Auto) {
				continue // the 1B model has shown the difference
			}
			c.Simulate = o.Simulate
			what := fmt.Sprintf("%s model, precision %s", s.name, c.Precision)
			if c.NoGraphs {
				what += ", without graphs"
			}
			r.part(o, what, func() error { return r.measureDecode(ctx, o, c, s, d) })
		}
	}
	return r, nil
}

// part does one part; its error is a fault of the report.
func (r *Report) part(o Options, what string, do func() error) {
	if o.Progress != nil {
		o.Progress(what)
	}
	if err := do(); err != nil {
		r.Faults = append(r.Faults, fmt.Sprintf("%s: %v", what, err))
	}
}

// with opens the machine anew and hands over the device: what one part broke,
// the next does not see.
func with(o Options, c cuda.Options, f func(kernels.Backend) error) (err error) {
	c.Simulate = o.Simulate
	s, err := cuda.Open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b, err := s.Backend(o.Device)
	if err != nil {
		return err
	}
	return f(b)
}

func (r *Report) measureKernels(ctx context.Context, o Options, p cuda.Precision) error {
	return with(o, cuda.Options{Precision: p}, func(b kernels.Backend) (err error) {
		m, err := newBench(ctx, b, o.Simulate != "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		add := func(ks []Kernel, err error) error {
			for _, k := range ks {
				k.Precision = string(p)
				k.OfCopy = k.GBps / r.Copy
				r.Kernels = append(r.Kernels, k)
			}
			return errors.Join(err, m.release())
		}
		if r.Copy == 0 {
			k, err := m.copyRate()
			if err != nil {
				return err
			}
			r.Copy = k.GBps
			if err := add([]Kernel{k}, nil); err != nil {
				return err
			}
		}
		errs := []error{add(m.rows()), add(m.tokens()), add(m.attention()), add(m.products(kernels.AsStored))}
		for _, f := range []kernels.Format{kernels.Q8, kernels.Q4} {
			if err := add(m.products(f)); err != nil {
				errs = append(errs, fmt.Errorf("weights in %v: %w", f, err))
			}
		}
		return errors.Join(errs...)
	})
}

func (r *Report) measureDecode(ctx context.Context, o Options, c cuda.Options, s shape, d decodeOptions) error {
	return with(o, c, func(b kernels.Backend) error {
		one, err := decode(ctx, b, s, d)
		if err != nil {
			return err
		}
		one.Precision, one.Graphs = string(c.Precision), !c.NoGraphs
		for i := range one.Batches {
			if r.Copy > 0 {
				one.Batches[i].OfCopy = one.Batches[i].GBps / r.Copy
			}
		}
		r.Decode = append(r.Decode, one)
		return nil
	})
}

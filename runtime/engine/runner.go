package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kvcache"
	"infer/runtime/loader"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// RunnerConfig says what Load loads, and where.
type RunnerConfig struct {
	Model      models.Model
	Checkpoint *loader.Checkpoint
	Plan       devicemap.Plan
	Backends   []kernels.Backend // those that the plan names; they stay the caller's
	Format     kernels.Format    // of the large matrices
	// Copies says how hidden states get from stage to stage, and what is
	// verified of them, of what the host gets and sends, and of weights.
	// Its Devices are those of Backends.
	Copies      transfer.Options
	StepTimeout time.Duration     // of one step; 0: two minutes
	Progress    func(bytes int64) // as in models.LoadOptions; may be nil
	sizesOnly   bool              // nothing will be computed: see measure
}

// Runner takes batches through the stages of a plan. It is used by one
// goroutine at a time.
type Runner struct {
	backends []kernels.Backend
	plan     devicemap.Plan
	model    models.Config
	stages   []*stage
	lanes    []*lane
	done     *lane // the one whose step was finished last
	timeout  time.Duration
	steps    uint64
	replays  atomic.Uint64
	replayed func(cause error) // Events.Replayed; may be nil
	verify   transfer.Verify

	// The context that bounds steps. It is renewed now and then, not for each
	// step, which would allocate.
	bound  context.Context
	expire context.CancelFunc
	since  time.Time

	out     tensor.Tensor // [MaxLogits, VocabSize] F32 on the last stage's device
	largest tensor.Tensor // [MaxLogits] I32
}

// stage is one models.Stage with what it needs on its device.
type stage struct {
	devicemap.Stage
	backend kernels.Backend
	stream  device.Stream
	ops     kernels.Ops
	model   models.Stage
	cache   *kvcache.Cache
	hidden  tensor.Tensor // [MaxTokens, Hidden], or none in the only stage
	bufs    []device.Buffer
	away    *away           // where its experts are; nil: on the stage's device
	before  *stage          // the stage before, when it is on the same device
	turn    device.Event    // passed when the next step may use the stage; nil with one lane
	checked []checkedWeight // what its device must hold
}

// Load opens the streams, reads the weights and allocates K/V pages and
// activations of every stage. An error leaves nothing behind.
func Load(ctx context.Context, c RunnerConfig) (_ *Runner, err error) {
	r := &Runner{plan: c.Plan, backends: c.Backends, model: c.Model.Config(), verify: c.Copies.Verify, timeout: c.StepTimeout}
	c.Copies.Devices = nil
	for _, b := range c.Backends {
		c.Copies.Devices = append(c.Copies.Devices, b.Device())
	}
	if r.timeout == 0 {
		r.timeout = 2 * time.Minute
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, ps := range c.Plan.Stages {
		backend, err := backendOf(c.Backends, ps.Device)
		if err != nil {
			return nil, err
		}
		if err := r.open(ctx, c, ps, backend); err != nil {
			return nil, &StageError{ps, err}
		}
	}
	if err := r.openLanes(c); err != nil {
		return nil, fmt.Errorf("queues of %d steps: %w", c.Plan.MicroBatches, err)
	}
	return r, nil
}

// bindThread makes the calling goroutine's thread that of the backends that
// compute on it.
func (r *Runner) bindThread() {
	for _, b := range r.backends {
		if b, ok := b.(kernels.ThreadBinder); ok {
			b.BindThread()
		}
	}
}

func backendOf(all []kernels.Backend, id device.ID) (kernels.Backend, error) {
	for _, b := range all {
		if b.Device().Info().ID == id {
			return b, nil
		}
	}
	return nil, fmt.Errorf("the plan names device %v, which is not open", id)
}

// open makes one stage; what it made is in r.stages even when it fails.
func (r *Runner) open(ctx context.Context, c RunnerConfig, ps devicemap.Stage, b kernels.Backend) error {
	st := &stage{Stage: ps, backend: b}
	var err error
	if n := len(r.stages); n > 0 && r.stages[n-1].Device == ps.Device {
		// One queue and one residual stream: nothing is copied between the two.
		st.before = r.stages[n-1]
		st.stream, st.ops = st.before.stream, st.before.ops
	}
	r.stages = append(r.stages, st)
	if st.before == nil {
		if st.stream, err = b.Device().NewStream(); err != nil {
			return err
		}
		if st.ops, err = b.NewOps(st.stream); err != nil {
			return err
		}
	}
	p := r.plan
	experts, err := r.openAway(st, c.Backends)
	if err != nil {
		return &awayError{ps.ExpertsOn, err}
	}
	st.model, err = c.Model.Load(ctx, models.LoadOptions{
		Lo: ps.Lo, Hi: ps.Hi, Embed: ps.Embed, Head: ps.Head,
		Checkpoint: c.Checkpoint, Backend: b, Stream: st.stream, Format: c.Format,
		MaxTokens: p.MaxTokens, MaxLogits: p.MaxLogits, MaxPositions: p.MaxContext, Progress: c.Progress, Experts: experts,
	})
	if err != nil {
		return err
	}
	if !c.sizesOnly {
		if err := r.verifyWeights(ctx, st); err != nil {
			return err
		}
	}
	if st.cache, err = kvcache.NewCache(b, ps.Hi-ps.Lo, p.Blocks, r.model.Heads); err != nil {
		return err
	}
	alloc := func(what string, d tensor.DType, dims ...int) (tensor.Tensor, error) {
		t := tensor.Tensor{DType: d, Shape: tensor.Of(dims...)}
		buf, err := b.Device().Alloc(t.Bytes())
		if err != nil {
			return t, fmt.Errorf("%s of %v: %w", what, t.Shape, err)
		}
		st.bufs = append(st.bufs, buf)
		t.Buf = buf
		return t, nil
	}
	switch {
	case st.before != nil:
		st.hidden = st.before.hidden
	case !ps.Embed || !ps.Head: // a stage that is the whole model has its own
		if st.hidden, err = alloc("hidden states", b.ActType(), p.MaxTokens, r.model.Hidden); err != nil {
			return err
		}
	}
	if !ps.Head {
		return nil
	}
	if r.out, err = alloc("logits", tensor.F32, p.MaxLogits, r.model.VocabSize); err != nil {
		return err
	}
	if r.largest, err = alloc("token ids", tensor.I32, p.MaxLogits); err != nil {
		return err
	}
	return nil
}

// Step computes b on all stages and waits for it, at most for the step's
// timeout (a little less, by up to an eighth). With wholeRows the logits are on
// the host afterwards (Row), else only the index of the largest of each row
// (Largest). See Start and Finish, of which it is both.
func (r *Runner) Step(b *kernels.Batch, wholeRows bool) error {
	r.Start(0, b, wholeRows)
	return r.Finish(0)
}

// context that bounds a step.
func (r *Runner) context() context.Context {
	if now := time.Now(); r.bound == nil || now.Sub(r.since) > r.timeout/8 {
		if r.expire != nil {
			r.expire()
		}
		r.bound, r.expire = context.WithTimeout(context.Background(), r.timeout)
		r.since = now
	}
	return r.bound
}

// end is a tensor as the stage's own queue reaches it.
func (st *stage) end(t tensor.Tensor) transfer.End {
	return transfer.End{Device: st.Device, Stream: st.stream, Ops: st.ops, Tensor: t}
}

// Row is the i-th row of logits of the last step, [VocabSize], valid until the
// next.
func (r *Runner) Row(i int) []float32 {
	v := r.model.VocabSize
	return r.done.logits[i*v : (i+1)*v : (i+1)*v]
}

// Largest is the index of the largest logit of the i-th row of the last step;
// −1 when the row is not numbers.
func (r *Runner) Largest(i int) int32 { return r.done.choice[i] }

// Broken is the sticky error of a device; nothing can be computed after it.
func (r *Runner) Broken() error {
	for i, st := range r.stages {
		if err := r.streamErr(i); err != nil {
			return fmt.Errorf("%v: %w", st.Stage, err)
		}
		if err := st.away.broken(); err != nil {
			return fmt.Errorf("experts of %v: %w", st.Stage, err)
		}
	}
	return nil
}

// Plan that was loaded.
func (r *Runner) Plan() devicemap.Plan { return r.plan }

// Bytes that each stage really holds: weights, K/V and activations.
func (r *Runner) Bytes() []devicemap.Bytes {
	var all []devicemap.Bytes
	for _, st := range r.stages {
		var b devicemap.Bytes
		b.Weights, b.Activations = st.model.Bytes()
		b.KV = st.cache.Bytes()
		for _, buf := range st.bufs {
			b.Activations += buf.Size()
		}
		all = append(all, b)
	}
	return all
}

// Away is what each stage's experts hold on the device that they are on; zeros
// for a stage that has them itself.
func (r *Runner) Away() []devicemap.Bytes {
	all := make([]devicemap.Bytes, len(r.stages))
	for i, st := range r.stages {
		if st.away != nil {
			all[i].Weights, all[i].Activations = st.model.ExpertBytes()
		}
	}
	return all
}

// settle waits for what is queued, which uses what is about to be freed. What
// a device says to that, it says to whoever uses it next.
func (r *Runner) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	for i, st := range r.stages {
		if st.stream != nil && st.before == nil {
			_ = st.stream.Sync(ctx)
		}
		for k, l := range r.lanes {
			if k > 0 && st.before == nil && i < len(l.streams) {
				_ = l.streams[i].Sync(ctx)
			}
		}
		_ = st.away.sync(ctx)
	}
}

// Close waits for what is under way, and frees everything that Load made.
func (r *Runner) Close() error {
	if r.expire != nil {
		r.expire()
	}
	r.settle()
	errs := []error{r.closeLanes()}
	for _, st := range r.stages {
		if st.model != nil {
			errs = append(errs, st.model.Close())
		}
		if st.cache != nil {
			errs = append(errs, st.cache.Close())
		}
		for _, b := range st.bufs {
			errs = append(errs, b.Free())
		}
		if st.stream != nil && st.before == nil {
			errs = append(errs, st.stream.Close())
		}
		errs = append(errs, st.away.close())
	}
	r.stages = nil
	return errors.Join(errs...)
}

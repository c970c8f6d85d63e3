package models

import (
	"fmt"
	"path/filepath"

	"infer/runtime/loader"
)

// Generation is what a checkpoint says about generating with it: the values
// that requests get when they leave theirs out. nil means not given.
type Generation struct {
	StopIDs     []int32 // eos_token_id here, else that of config.json
	DoSample    *bool
	Temperature *float64 // ≥ 0
	TopK        *int     // ≥ 0, 0 means off
	TopP        *float64 // > 0 to 1
	MinP        *float64 // 0 to 1
	Repetition  *float64 // repetition_penalty, > 0
	MaxNew      *int     // max_new_tokens, ≥ 1
}

// ReadGeneration reads generation_config.json, which may be absent, checked as
// strictly as config.json.
func ReadGeneration(ck *loader.Checkpoint, cfg Config) (Generation, error) {
	g := Generation{StopIDs: cfg.StopIDs}
	if ck.GenerationConfig == nil {
		return g, checkStops(filepath.Join(ck.Name, loader.ConfigName), g.StopIDs, cfg.VocabSize)
	}
	c, err := ParseConfig(filepath.Join(ck.Name, loader.GenerationName), ck.GenerationConfig)
	if err != nil {
		return g, err
	}
	source := loader.ConfigName
	if ids := c.IDs("eos_token_id"); ids != nil {
		g.StopIDs, source = ids, loader.GenerationName
	}
	number := func(key string, lo, hi float64) *float64 {
		if !c.Has(key) {
			return nil
		}
		f := c.Float(key, lo)
		if f < lo || f > hi {
			c.Fail(key, "is %g, outside %g to %g", f, lo, hi)
		}
		return &f
	}
	integer := func(key string, lo int) *int {
		if !c.Has(key) {
			return nil
		}
		n := c.Int(key, lo, lo, 1<<30)
		return &n
	}
	if c.Has("do_sample") {
		b := c.Bool("do_sample", false)
		g.DoSample = &b
	}
	g.Temperature = number("temperature", 0, 1e6)
	if g.TopK = integer("top_k", -1); g.TopK != nil {
		*g.TopK = max(*g.TopK, 0) // some files say -1 for off
	}
	if g.TopP = number("top_p", 0, 1); g.TopP != nil {
		*g.TopP = max(*g.TopP, 1e-9) // 0 leaves the likeliest token, as any tiny share does
	}
	g.MinP = number("min_p", 0, 1)
	g.Repetition = number("repetition_penalty", 1e-6, 1e6)
	g.MaxNew = integer("max_new_tokens", 1)
	if err := c.Err(); err != nil {
		return g, err
	}
	return g, checkStops(filepath.Join(ck.Name, source), g.StopIDs, cfg.VocabSize)
}

// checkStops refuses ids that the model can never make: it would go on past its
// end.
func checkStops(file string, ids []int32, vocab int) error {
	for _, id := range ids {
		if int(id) >= vocab {
			return fmt.Errorf("%s: eos_token_id is %d, outside the vocabulary of %d", file, id, vocab)
		}
	}
	return nil
}

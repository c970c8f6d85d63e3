package engine

import (
	"time"

	"infer/runtime/kernels"
)

// pace sizes the prompt chunks of steps in which other sequences decode, so
// that none of them waits much longer than target for its next token. It
// learns from the steps so far, and reads no clock itself.
type pace struct {
	target time.Duration // of one step; ≤ 0: chunks are not cut
	step   float64       // seconds of a step without prompt rows
	row    float64       // seconds that one prompt row adds
}

// firstChunk is the prompt rows of a step when nothing is known of the speed.
const firstChunk = 4 * kernels.BlockSize

// observe learns from a step that took d.
func (p *pace) observe(promptRows int, d time.Duration) {
	s := d.Seconds()
	if promptRows == 0 {
		p.step = learn(p.step, s)
		return
	}
	// An estimate of the decoding part may be higher than the whole: then it is
	// wrong, after a step in which the process was stopped by far. While prompts
	// are read there is no step without them to learn from.
	p.step = min(p.step, s)
	row := (s - min(p.step, s*7/8)) / float64(promptRows)
	if promptRows >= kernels.BlockSize || row < p.row {
		p.row = learn(p.row, row)
	}
}

// learn takes what is slower at once, and goes halfway to what is faster: a
// gap that is too long is worse than a chunk that is too short.
func learn(old, seen float64) float64 {
	return max(seen, (old+seen)/2)
}

// rows is how many prompt rows a step with decoding sequences may have; 0: any
// number. It is at least a block, since prompts must get on too.
func (p *pace) rows() int {
	switch {
	case p.target <= 0:
		return 0
	case p.row == 0:
		return firstChunk
	}
	n := (p.target.Seconds() - p.step) / p.row
	if n > 1<<20 {
		return 0
	}
	return max(int(n)/kernels.BlockSize, 1) * kernels.BlockSize
}

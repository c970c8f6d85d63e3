package engine

import (
	"math"
	"time"

	"infer/runtime/kernels"
)

// pace sizes the prompt chunks of steps in which other sequences decode, so
// that none of them waits much longer than target for its next token, nor, while
// one prompt is read, 1 + share times as long as without. It learns from the steps
// so far, and reads no clock itself.
type pace struct {
	target time.Duration // of one step; ≤ 0: chunks are not cut
	step   float64       // seconds of a step without prompt rows; 0: not known
	mixed  int           // steps since then in which prompts were read and sequences decoded
	row    float64       // seconds that one prompt row adds
}

const (
	// share is the time for each prompt that is to be read, in that of a step without:
	// one gets five ninths of the time, and leaves sequences four ninths of their
	// speed. When many wait it is better that they soon decode together.
	share = 1.25
	// maxMixed steps after it was measured, a step without prompt rows is due:
	// more sequences may decode by then, or have longer contexts.
	maxMixed = 16
	// minChunk is the prompt rows that a step has whatever they cost: kernels
	// read the weights once for a few rows anyway. Chunks are multiples of it.
	minChunk = 4
	// firstChunk is the prompt rows of a step when nothing is known of the speed.
	firstChunk = 4 * kernels.BlockSize
	// noLimit is for as many prompt rows as fit.
	noLimit = math.MaxInt
)

// observe learns from a step that took d, of so many rows of prompts and of
// sequences that decode.
func (p *pace) observe(promptRows, decoded int, d time.Duration) {
	s := d.Seconds()
	if promptRows == 0 {
		if p.step == 0 {
			p.step = s
		}
		// What is faster at once: a step thought too long makes gaps too long.
		p.step, p.mixed = min(s, (p.step+s)/2), 0
		return
	}
	if decoded > 0 {
		// An estimate of the decoding part may be higher than the whole: then it
		// is wrong, after a step in which the process was stopped by far.
		p.step = min(p.step, s)
		p.mixed++
	}
	row := (s - min(p.step, s*7/8)) / float64(promptRows)
	if promptRows >= minChunk || row < p.row {
		p.row = learn(p.row, row)
	}
}

// learn takes what is slower at once, and goes halfway to what is faster: a
// gap that is too long is worse than a chunk that is too short.
func learn(old, seen float64) float64 {
	return max(seen, (old+seen)/2)
}

// rows is how many prompt rows the next step with decoding sequences may have, when
// so many prompts are to be read. It is at least minChunk, since prompts must get on
// too, but for the steps that are to be measured.
func (p *pace) rows(prompts int) int {
	switch {
	case p.target <= 0:
		return noLimit
	case p.mixed >= maxMixed:
		return 0
	case p.row == 0:
		return firstChunk
	}
	most := p.target.Seconds()
	if p.step > 0 {
		most = min(most, p.step*(1+share*float64(prompts)))
	}
	n := (most - p.step) / p.row
	if n > 1<<20 {
		return noLimit
	}
	return max(int(n)/minChunk, 1) * minChunk
}

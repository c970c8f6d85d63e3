package engine

import (
	"time"

	"infer/runtime/kernels"
)

// pace sizes the prompt chunks of steps in which other sequences decode, so
// that none of them waits much longer than target for its next token, nor slack
// times as long as without prompts. It learns from the steps so far, and reads
// no clock itself.
type pace struct {
	target  time.Duration // of one step; ≤ 0: chunks are not cut
	step    float64       // seconds of a step without prompt rows; 0: not known
	decoded int           // rows of that step
	row     float64       // seconds that one row more adds
}

const (
	// slack leaves a prompt half of a step's time, and sequences half of their
	// speed.
	slack = 2
	// firstChunk is the prompt rows of a step when nothing is known of the speed.
	firstChunk = 4 * kernels.BlockSize
)

// observe learns from a step that took d.
func (p *pace) observe(promptRows, decoded int, d time.Duration) {
	s := d.Seconds()
	if promptRows == 0 {
		p.step, p.decoded = learn(p.step, s), decoded
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

// rows is how many prompt rows a step may have in which so many decode; 0: any
// number. It is at least a block, since prompts must get on too.
func (p *pace) rows(decoding int) int {
	switch {
	case p.target <= 0:
		return 0
	case p.row == 0:
		return firstChunk
	}
	most, usual := p.target.Seconds(), p.step
	if usual > 0 {
		usual += p.row * float64(max(decoding-p.decoded, 0))
		most = min(most, slack*usual)
	}
	n := (most - usual) / p.row
	if n > 1<<20 {
		return 0
	}
	return max(int(n)/kernels.BlockSize, 1) * kernels.BlockSize
}

package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how far a long step is: a bar on a terminal, elsewhere a log
// line every few seconds. A step that ends soon shows nothing.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	log   zerolog.Logger
	bars  *mpb.Progress
	bar   *mpb.Bar
	what  string
	done  int64
	total int64
	start time.Time
	last  time.Time
}

// Quiet time before the first bar, and between log lines.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 5 * time.Second
)

func newProgress(out io.Writer, log zerolog.Logger) *progress {
	return &progress{out: out, log: log}
}

// begin starts a step of total bytes, ending the one before.
func (p *progress) begin(what string, total int64) {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.total, p.done = what, total, 0
	p.start = time.Now()
	p.last = p.start
}

// add notes n more bytes; safe for concurrent use.
func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := time.Now()
	if now.Sub(p.start) < progressAfter {
		return
	}
	if !isTerminal(p.out) {
		if now.Sub(p.last) >= progressEvery {
			p.last = now
			p.log.Info().Int64("done", p.done).Int64("total", p.total).Msg(p.what)
		}
		return
	}
	if p.bar == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(64))
		p.bar = p.bars.AddBar(p.total,
			mpb.PrependDecorators(decor.Name(p.what+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)),
			mpb.BarRemoveOnComplete())
	}
	p.bar.SetCurrent(p.done)
}

// end finishes the step and clears its bar.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
		p.bar, p.bars = nil, nil
	}
}

// newCommandProgress is for commands that have nothing else to log.
func newCommandProgress(cmd *cobra.Command) *progress {
	return newProgress(cmd.ErrOrStderr(), commandLogger(cmd))
}

package engine

import (
	"testing"
	"time"
)

// A machine whose steps cost so much each, and so much a prompt row, more the
// further the prompt is read.
type clockwork struct{ step, row, perContext float64 }

func (c clockwork) time(rows, context int) time.Duration {
	return time.Duration((c.step + float64(rows)*(c.row+c.perContext*float64(context))) * float64(time.Second))
}

func TestPaceHoldsTheGap(t *testing.T) {
	const target = 150 * time.Millisecond
	for name, m := range map[string]clockwork{
		"laptop":          {0.030, 0.0012, 2e-7},
		"small model":     {0.002, 0.00002, 1e-9},
		"attention-bound": {0.020, 0.0005, 1e-6},
		"fast decoding":   {0.007, 0.0007, 4e-7}, // few rows double a step, far in a prompt
	} {
		t.Run(name, func(t *testing.T) {
			p := pace{target: target}
			for range 5 {
				p.observe(0, 1, m.time(0, 0))
			}
			late, steps := 0, 0
			most := min(target.Seconds(), (1+share)*m.step)
			for read := 0; read < 8000; steps++ {
				rows := min(p.rows(1), 512, 8000-read)
				if rows%minChunk != 0 && read+rows != 8000 {
					t.Fatalf("a chunk of %d rows", rows)
				}
				d := m.time(rows, read)
				if d.Seconds() > 1.15*most && rows > minChunk {
					late++
				}
				p.observe(rows, 1, d)
				read += rows
			}
			if late > 1 { // the first may be, when nothing was known
				t.Errorf("%d of %d steps took longer than %v s", late, steps, most)
			}
			if n := int(8000*(m.row+8000*m.perContext)/(most-m.step)*1.5)*(maxMixed+1)/maxMixed + 20; steps > n {
				t.Errorf("%d steps for what needs about %d", steps, n)
			}
		})
	}
}

func TestPaceAlwaysGetsOn(t *testing.T) {
	p := pace{target: 150 * time.Millisecond}
	if p.rows(1) != firstChunk {
		t.Errorf("%d rows at first", p.rows(1))
	}
	p.observe(0, 1, time.Second) // decoding alone takes longer than the target
	p.observe(64, 1, 3*time.Second)
	if p.rows(1) != minChunk {
		t.Errorf("%d rows on a slow machine", p.rows(1))
	}
	for range 30 {
		p.observe(0, 1, 40*time.Millisecond)
		p.observe(16, 1, 42*time.Millisecond)
	}
	if p.rows(1) < 64 {
		t.Errorf("%d rows once it is fast again", p.rows(1))
	}
	p.target = 0
	if p.rows(1) != noLimit {
		t.Error("cut without a target")
	}
}

// The more prompts wait, the more of a step is theirs, up to the target.
func TestPaceWithManyPrompts(t *testing.T) {
	p := pace{target: 152 * time.Millisecond}
	m := clockwork{step: 0.010, row: 0.001}
	p.observe(0, 1, m.time(0, 0))
	p.observe(64, 1, m.time(64, 0))
	for prompts, want := range map[int]int{0: minChunk, 1: 12, 4: 48, 9: 112, 12: 140, 1000: 140} {
		if got := p.rows(prompts); got != want {
			t.Errorf("%d prompts: %d rows, want %d", prompts, got, want)
		}
	}
}

// A process that was stopped in a decoding step (SIGSTOP, a paused machine)
// reads the next prompt in chunks of a useful size all the same.
func TestPaceAfterPause(t *testing.T) {
	p := pace{target: 150 * time.Millisecond}
	m := clockwork{step: 0.030, row: 0.0012}
	for range 5 {
		p.observe(0, 1, m.time(0, 0))
		p.observe(64, 1, m.time(64, 0))
	}
	p.observe(0, 1, time.Minute)
	late, steps := 0, 0
	for read := 0; read < 3000; steps++ {
		rows := min(p.rows(1), 3000-read)
		d := m.time(rows, read)
		if d > 2*p.target {
			late++
		}
		p.observe(rows, 1, d)
		read += rows
	}
	if n := int(1.25 * 3000 * m.row / (share * m.step)); steps > n || late > 1 {
		t.Errorf("%d steps for what needs about %d, %d of them much too long", steps, n, late)
	}
}

// When more sequences decode than at first, or with longer contexts, a step is
// measured without prompts now and then, and prompts get their half of it.
func TestPaceFollowsDecoding(t *testing.T) {
	const row = 0.001
	p := pace{target: 150 * time.Millisecond}
	p.observe(0, 1, 9*time.Millisecond)
	var read, alone, late int
	const steps = 400
	for range steps {
		n := p.rows(1)
		d := 0.035 + row*float64(n)
		if d > 0.035*(1+share)*1.15 {
			late++
		}
		p.observe(n, 31, time.Duration(d*float64(time.Second)))
		read += n
		if n == 0 {
			alone++
		}
	}
	if least := steps * share * 0.035 / row * 2 / 3; float64(read) < least || alone > steps/maxMixed+1 || late > 1 {
		t.Errorf("%d steps: %d rows read, want %.0f; %d of them without; %d too long", steps, read, least, alone, late)
	}
	p.observe(100, 0, time.Millisecond) // nothing decodes in it
	if p.step < 0.034 {
		t.Errorf("a step without prompts takes %g s now", p.step)
	}
}

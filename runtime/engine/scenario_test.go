package engine

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output of scenario files")

// Each file of testdata/scheduler is a list of blocks
//
//	# comment
//	command name key=value …
//	----
//	expected output
//	(blank line)
//
// run against one Scheduler. go test -run TestScenarios -rewrite updates them;
// read the difference before committing it.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scheduler/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			in, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out := (&scenario{seqs: map[string]*Sequence{}}).replay(string(in))
			if *rewrite {
				if err := os.WriteFile(name, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if out != string(in) {
				t.Fatalf("%s differs from what the scheduler does:\n%s", name, firstDifference(string(in), out))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			return fmt.Sprintf("line %d:\nwant %q\ngot  %q", i+1, strings.Join(w[min(i, len(w)):min(i+3, len(w))], "\n"), strings.Join(g[i:min(i+3, len(g))], "\n"))
		}
	}
	return "the file has more lines"
}

type scenario struct {
	s     *Scheduler
	step  *Step
	seqs  map[string]*Sequence
	order []string
}

func (c *scenario) replay(in string) string {
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(in))
	expecting := false
	for lines.Scan() {
		line := lines.Text()
		switch {
		case expecting: // drop the old output
			expecting = line != ""
		case line == "" || strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		case line == "----":
			expecting = true
		default:
			out.WriteString(line + "\n----\n" + c.run(line) + "\n")
		}
	}
	return out.String()
}

// args of a command: words, then key=value.
type args struct {
	words []string
	kv    map[string]string
}

func (a args) num(key string, def int) int {
	if v, ok := a.kv[key]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return def
}

func (c *scenario) run(line string) string {
	a := args{kv: map[string]string{}}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.kv[k] = v
		} else {
			a.words = append(a.words, w)
		}
	}
	var b strings.Builder
	switch a.words[0] {
	case "new":
		l := Limits{
			Blocks: a.num("blocks", 8), MaxContext: a.num("context", 128), MaxSeqs: a.num("seqs", 4),
			MaxTokens: a.num("tokens", 32), MaxQueue: a.num("queue", 8), NoPrefix: a.kv["prefix"] == "off",
		}
		l.MaxLogits = a.num("logits", l.MaxSeqs)
		s, err := NewScheduler(l)
		if err != nil {
			return err.Error() + "\n"
		}
		c.s = s
		return "ok\n"
	case "submit":
		return c.submit(a)
	case "cancel":
		c.s.Cancel(c.seqs[a.words[1]])
		b.WriteString("ok\n")
	case "expire":
		for _, q := range c.s.Expire(time.Unix(int64(a.num("now", 0)), 0)) {
			fmt.Fprintf(&b, "%s expired\n", c.name(q))
		}
		if b.Len() == 0 {
			b.WriteString("none\n")
		}
	case "next":
		c.next(&b)
	case "apply":
		c.apply(&b, a)
	case "abort":
		c.s.Abort()
		c.step = nil
		b.WriteString("ok\n")
	case "run": // steps until done or for n steps
		for i := 0; i < a.num("steps", 1000); i++ {
			c.next(&b)
			if c.step == nil {
				break
			}
			c.apply(&b, a)
		}
	case "state":
		c.state(&b)
	default:
		panic("unknown command " + line)
	}
	if c.step == nil {
		if err := c.s.Check(); err != nil {
			fmt.Fprintf(&b, "CHECK FAILED: %v\n", err)
		}
	}
	return b.String()
}

func (c *scenario) submit(a args) string {
	name := a.words[1]
	q := &Sequence{MaxNew: a.num("max", 1), Priority: a.num("priority", 0), Salt: a.kv["salt"], PromptRows: a.kv["rows"] == "on"}
	if n := a.num("deadline", 0); n > 0 {
		q.Deadline = time.Unix(int64(n), 0)
	}
	// Ids count up from text=; fork=n changes the ids from position n on.
	fork := a.num("fork", 1<<30)
	for i := range a.num("prompt", 1) {
		id := int32(1000*a.num("text", 0) + i)
		if i >= fork {
			id += 500
		}
		q.Tokens = append(q.Tokens, id)
	}
	if err := c.s.Submit(q); err != nil {
		for _, known := range []error{ErrQueueFull, ErrTooLong} {
			if errors.Is(err, known) {
				return "refused: " + err.Error() + "\n"
			}
		}
		return "error: " + err.Error() + "\n"
	}
	c.seqs[name] = q
	c.order = append(c.order, name)
	return "ok\n"
}

func (c *scenario) name(q *Sequence) string {
	for n, s := range c.seqs {
		if s == q {
			return n
		}
	}
	return "?"
}

func (c *scenario) next(b *strings.Builder) {
	before := map[string]int{}
	for n, q := range c.seqs {
		before[n] = q.preempts
	}
	c.step = c.s.Next()
	for _, n := range c.order {
		if c.seqs[n].preempts > before[n] {
			fmt.Fprintf(b, "%s preempted\n", n)
		}
	}
	if c.step == nil {
		b.WriteString("nothing to do\n")
		return
	}
	bt := &c.step.Batch
	for i, r := range c.step.Rows {
		kind := "prefill"
		if r.Seq.decoding() {
			kind = "decode"
		}
		fmt.Fprintf(b, "%s %s %d..%d of %d blocks=%v", c.name(r.Seq), kind, r.Lo, r.Lo+r.N, len(r.Seq.Tokens), bt.BlockTables[i])
		if r.Logits > 0 {
			fmt.Fprintf(b, " logits=%v", bt.Logits[r.Logit:r.Logit+r.Logits])
		}
		if r.PromptN > 0 {
			fmt.Fprintf(b, " prompt=%d..%d", r.PromptLo, r.PromptLo+r.PromptN)
		}
		if r.Sample {
			b.WriteString(" sample")
		}
		b.WriteByte('\n')
	}
}

// apply samples id 900 everywhere; name=stop ends that sequence by a stop id.
func (c *scenario) apply(b *strings.Builder, a args) {
	var outs []Outcome
	for _, r := range c.step.Rows {
		if r.Sample {
			outs = append(outs, Outcome{Token: 900, Stop: a.kv[c.name(r.Seq)] == "stop"})
		}
	}
	rows := append([]Row(nil), c.step.Rows...)
	c.s.Apply(outs)
	c.step = nil
	for _, r := range rows {
		if r.Seq.status == statusFinished {
			fmt.Fprintf(b, "  %s finished %q output=%d\n", c.name(r.Seq), r.Seq.finish, len(r.Seq.Output()))
		}
	}
	if a.words[0] == "apply" {
		b.WriteString("ok\n")
	}
}

func (c *scenario) state(b *strings.Builder) {
	for _, n := range c.order {
		q := c.seqs[n]
		fmt.Fprintf(b, "%s %v computed=%d of %d blocks=%v", n, q.status, q.computed, len(q.Tokens), q.blocks)
		if q.cached > 0 {
			fmt.Fprintf(b, " cached=%d", q.cached)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "available=%d of %d cached=%d\n%+v\n", c.s.blocks.Available(), c.s.blocks.Total(), c.s.blocks.Cached(), c.s.Counters())
}

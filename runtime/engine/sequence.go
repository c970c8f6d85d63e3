package engine

import (
	"cmp"
	"time"

	"infer/runtime/kvcache"
)

// status of a Sequence.
type status uint8

const (
	statusNew status = iota
	statusWaiting
	statusRunning
	statusFinished
)

func (s status) String() string {
	return [...]string{"new", "waiting", "running", "finished"}[s]
}

// Sequence is one prompt and the tokens generated behind it, as the Scheduler
// keeps it. The exported fields are set before Submit, and belong to
// the Scheduler from then on.
type Sequence struct {
	Tokens     []int32 // prompt, then output
	MaxNew     int     // tokens to generate at most; 0: none, the prompt is only evaluated
	Priority   int     // lower runs first
	Salt       string
	Deadline   time.Time // zero: none
	PromptRows bool      // logits of every prompt position are wanted; does not read the prefix cache

	arrival  uint64
	prompt   int // of Tokens
	limit    int // of len(Tokens)
	status   status
	inStep   bool // part of the step between Next and Apply
	dropped  bool // cancelled while inStep
	finish   Finish
	blocks   []int32       // pages of positions 0..
	keys     []kvcache.Key // of full blocks of Tokens, as far as needed yet
	shared   int           // leading blocks that were offered to, or came from, the prefix cache
	computed int           // leading tokens whose K/V is in blocks, committed
	rowsDone int           // leading prompt positions whose logits were delivered
	cached   int           // prompt tokens taken from the prefix cache at first admission
	admitted bool          // was running before
	preempts int
	draft    []int32 // guesses of what follows Tokens
	guessed  int     // of draft, those that the next step computes
	guesses  guesses

	task *task // the engine's; not touched by the Scheduler
}

// Output is the generated tokens so far.
func (q *Sequence) Output() []int32 { return q.Tokens[q.prompt:] }

// decoding tells whether only the newest token is still to be computed.
func (q *Sequence) decoding() bool {
	return q.computed == len(q.Tokens)-1 && len(q.Tokens) > q.prompt
}

// before orders sequences: priority, then arrival.
func before(a, b *Sequence) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.arrival, b.arrival))
}

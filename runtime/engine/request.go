package engine

import (
	"errors"
	"time"
)

// Errors of Generate that callers turn into answers.
var (
	ErrQueueFull = errors.New("the waiting queue is full")
	ErrDraining  = errors.New("the server is shutting down")
	ErrDeadline  = errors.New("the request's deadline has passed")
	ErrTooLong   = errors.New("the prompt does not fit the context length")
	ErrInvalid   = errors.New("invalid request")
	// ErrFault: a device, a copy between devices or the model's output is
	// broken. No token of the step that showed it was given out.
	ErrFault = errors.New("device fault")
)

// Request is one sequence to generate.
type Request struct {
	Prompt   []int32 // ids, at least one
	Sampling Sampling
	// Choice is the index among the n choices of one request: it is added to
	// the seed, so that choices differ and each is reproducible.
	Choice int
	// KeepSpecial leaves special tokens' text in Event.Bytes; without it they
	// are tokens without text.
	KeepSpecial bool

	Priority int       // lower runs first among the waiting
	Salt     string    // prefix cache is shared only between equal salts
	Deadline time.Time // zero: none
}

// Sampling says how tokens are chosen. The zero value of a number means what
// is noted; api and cmd fill in generation_config.json's defaults before.
type Sampling struct {
	MaxTokens   int     // 0: the rest of the context
	MinTokens   int     // stop ids cannot be chosen before
	Temperature float64 // 0: greedy
	TopK        int     // 0: off
	TopP        float64 // 0 or 1: off
	MinP        float64 // 0: off
	Repetition  float64 // 0 or 1: off; applies to prompt and output
	Presence    float64 // applies to output
	Frequency   float64 // applies to output
	LogitBias   map[int32]float32
	Allowed     []int32   // when not nil, only these ids can be chosen
	BadWords    [][]int32 // id runs that must not be completed
	Seed        *int64    // nil: a random one, reported in Result
	Stop        []string  // stop strings; applied by Text, not by the step loop
	StopIDs     []int32   // with the model's own, unless IgnoreEOS
	IgnoreEOS   bool      // the model's own stop ids are ordinary tokens
	Logprobs    int       // −1: none; else how many alternatives per token (0: the chosen only)
	// PromptLogprobs is like Logprobs, for the prompt's tokens; it bypasses
	// the prefix cache.
	PromptLogprobs int
}

// Logprob is a token's natural-log probability before temperature.
type Logprob struct {
	ID      int32
	Logprob float32 // may be −Inf
	Rank    int     // 1 is the likeliest
	Top     []TokenLogprob
}

// TokenLogprob is one alternative, likeliest first.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}

// Finish is why a sequence ended.
type Finish string

// The reasons. Stop covers stop ids and stop strings.
const (
	FinishNone   Finish = ""
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
)

// Event is one step of one sequence's answer. The first Event may come without
// a token, with Prompt set, when prompt log-probabilities were asked for.
type Event struct {
	HasToken bool
	Token    int32
	Bytes    []byte    // text this token made certain; may end inside a UTF-8 character
	Logprob  *Logprob  // when asked for
	Prompt   []Logprob // prompt log-probabilities, entry 0 has no probability (Rank 0)
}

// Result is the end of one sequence's answer. Beside an error it holds what
// was known when the sequence ended (Prompt, Completion, Cached, Times).
type Result struct {
	Finish     Finish
	StopID     int32 // the stop id that ended it, or −1; it was the last Event's token, with no Bytes of its own
	Seed       int64
	Prompt     int // tokens
	Completion int // tokens, the stop token included
	Cached     int // of the prompt's tokens, taken from the prefix cache
	Times      Times
}

// Times of one sequence.
type Times struct {
	Queued, Started, FirstToken, Done time.Time
}

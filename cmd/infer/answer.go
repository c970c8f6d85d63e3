package main

import (
	"context"
	"errors"
	"strings"

	"infer/runtime/engine"
	"infer/runtime/tokenizer"
)

// errStopString ends a sequence whose text has met a stop string.
var errStopString = errors.New("stop string")

// answer is one finished generation.
type answer struct {
	text   string
	ids    []int32 // all that were generated, the stop id included
	result engine.Result
}

// generator is the engine, as far as commands need it.
type generator interface {
	Generate(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error)
}

// generate runs one request and hands its text to write as it becomes certain:
// whole characters only, and never a part of a stop string.
func generate(ctx context.Context, g generator, r engine.Request, write func(text string) error) (answer, error) {
	var (
		a      answer
		text   strings.Builder
		holder tokenizer.UTF8Holder
		stops  = tokenizer.NewStopFilter(r.Sampling.Stop, false)
	)
	out := func(chunk string) error {
		if chunk == "" {
			return nil
		}
		text.WriteString(chunk)
		return write(chunk)
	}
	result, err := g.Generate(ctx, r, func(e engine.Event) error {
		if e.HasToken {
			a.ids = append(a.ids, e.Token)
		}
		chunk, stopped := stops.Push(holder.Push(e.Bytes))
		if err := out(chunk); err != nil {
			return err
		}
		if stopped {
			return errStopString
		}
		return nil
	})
	if errors.Is(err, errStopString) {
		result.Finish, err = engine.FinishStop, nil
		result.Completion = len(a.ids)
	} else if flushErr := out(lastText(stops, &holder)); err == nil {
		err = flushErr
	}
	a.text, a.result = text.String(), result
	return a, err
}

// lastText is what was held back when the answer ended without a stop string.
func lastText(stops *tokenizer.StopFilter, holder *tokenizer.UTF8Holder) string {
	chunk, stopped := stops.Push(holder.Flush())
	if stopped {
		return chunk
	}
	return chunk + stops.Flush()
}

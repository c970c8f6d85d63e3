package models_test

import (
	"math"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/kernels/ref"
	"infer/runtime/loader"
	"infer/runtime/loader/loadertest"
)

func TestBadCheckpoints(t *testing.T) {
	loadertest.Run(t, "checkpoint", func(t *testing.T, c loadertest.Case) {
		var ck *loader.Checkpoint
		c.Check(t, func() (err error) {
			if ck, err = loader.Open(c.Dir); err != nil {
				return err
			}
			t.Cleanup(func() {
				if err := ck.Close(); err != nil {
					t.Error(err)
				}
			})
			_, err = models.Open(ck)
			return err
		})
		if c.Verdict == "reject" || t.Failed() {
			return
		}
		r := modelstest.New(t, ck, ref.Open(), modelstest.Options{MaxTokens: 32, Positions: 64, Blocks: 4})
		logits := r.Step(modelstest.Run{Seq: &modelstest.Seq{}, IDs: c.PromptIDs})
		last := logits[len(logits)-1]
		if len(c.LastLogits) != len(last) {
			t.Fatalf("%d logits, want %d", len(last), len(c.LastLogits))
		}
		for i, want := range c.LastLogits {
			if d := math.Abs(float64(last[i] - want)); !(d <= modelstest.Tolerance) {
				t.Errorf("logit %d is %g, want %g", i, last[i], want)
			}
		}
	})
}

package engine

import (
	"cmp"
	"slices"
)

// logprob describes id in a row of logits as the model gave them, with the n
// likeliest alternatives. Equal logits have equal rank; lower ids come first.
func logprob(row []float32, id int32, n int) (Logprob, error) {
	m, at, ok := maximum(row)
	if !ok || at < 0 {
		return Logprob{}, errBadLogits
	}
	lse := logSumExp(row, m)
	p := Logprob{ID: id, Logprob: float32(float64(row[id]) - lse), Rank: 1}
	for _, x := range row {
		if x > row[id] {
			p.Rank++
		}
	}
	for _, t := range topN(row, n) {
		p.Top = append(p.Top, TokenLogprob{ID: t, Logprob: float32(float64(row[t]) - lse)})
	}
	return p, nil
}

// topN are the ids of the n largest elements, largest first, lower ids first
// among equals.
func topN(row []float32, n int) []int32 {
	n = min(n, len(row))
	if n <= 0 {
		return nil
	}
	// A heap whose root is the worst of the best so far.
	worse := func(a, b int32) bool { return row[a] < row[b] || row[a] == row[b] && a > b }
	heap := make([]int32, 0, n)
	for i := range int32(len(row)) {
		if len(heap) < n {
			heap = append(heap, i)
			for c := len(heap) - 1; c > 0 && worse(heap[c], heap[(c-1)/2]); c = (c - 1) / 2 {
				heap[c], heap[(c-1)/2] = heap[(c-1)/2], heap[c]
			}
			continue
		}
		if !worse(heap[0], i) {
			continue
		}
		heap[0] = i
		for p := 0; ; {
			c := 2*p + 1
			if c >= n {
				break
			}
			if c+1 < n && worse(heap[c+1], heap[c]) {
				c++
			}
			if !worse(heap[c], heap[p]) {
				break
			}
			heap[c], heap[p] = heap[p], heap[c]
			p = c
		}
	}
	slices.SortFunc(heap, func(a, b int32) int { return cmp.Or(cmp.Compare(row[b], row[a]), cmp.Compare(a, b)) })
	return heap
}

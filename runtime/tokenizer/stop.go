package tokenizer

// StopFilter watches a text that arrives in chunks for stop strings. It lets
// out only what surely is no part of one, so that no piece of a stop string
// leaks however the chunks are cut. The stop string that ends first wins; of
// those that end at the same place, the one that starts first.
type StopFilter struct {
	stops   []string
	fail    [][]int // KMP failure links of each stop string
	state   []int   // how much of each stop string the text so far ends with
	held    []byte
	include bool
	matched string
	done    bool
}

// NewStopFilter makes a filter for the given stop strings; empty ones are
// ignored. With include, a stop string that was met is part of the output.
func NewStopFilter(stops []string, include bool) *StopFilter {
	f := &StopFilter{include: include}
	for _, s := range stops {
		if s == "" {
			continue
		}
		fail := make([]int, len(s)+1)
		for i, k := 1, 0; i < len(s); i++ {
			for k > 0 && s[i] != s[k] {
				k = fail[k]
			}
			if s[i] == s[k] {
				k++
			}
			fail[i+1] = k
		}
		f.stops = append(f.stops, s)
		f.fail = append(f.fail, fail)
	}
	f.state = make([]int, len(f.stops))
	return f
}

// Push takes the next chunk and returns the text that may go out. stopped is
// true once a stop string has been met: text is then the last of the output, and
// anything pushed later is dropped.
func (f *StopFilter) Push(chunk string) (text string, stopped bool) {
	if f.done {
		return "", true
	}
	if len(f.stops) == 0 {
		return chunk, false
	}
	for i := range len(chunk) {
		c := chunk[i]
		longest := 0
		for j, s := range f.stops {
			k := f.state[j]
			for k > 0 && s[k] != c {
				k = f.fail[j][k]
			}
			if s[k] == c {
				k++
			}
			if k == len(s) && len(s) > len(f.matched) {
				f.matched, f.done = s, true
				k = f.fail[j][k]
			}
			f.state[j] = k
			longest = max(longest, k)
		}
		f.held = append(f.held, c)
		if f.done {
			out := f.held
			if !f.include {
				out = out[:len(out)-len(f.matched)]
			}
			f.held = nil
			return string(out), true
		}
		if i == len(chunk)-1 {
			n := len(f.held) - longest
			text = string(f.held[:n])
			f.held = append(f.held[:0], f.held[n:]...)
		}
	}
	return text, false
}

// Flush ends the text: what was held turned out to be no stop string.
func (f *StopFilter) Flush() string {
	s := string(f.held)
	f.held = nil
	return s
}

// Matched is the stop string that was met, if one was.
func (f *StopFilter) Matched() (string, bool) { return f.matched, f.done }

// Held is how many bytes are kept back at present.
func (f *StopFilter) Held() int { return len(f.held) }

package tokenizer

import "unicode/utf8"

// A scanner finds the match of one well-known pre-tokenizer pattern that starts
// at byte i of s (i < len(s)) and returns where it ends, or -1 where the pattern
// does not match at i. It does by hand, at one look per character, what the
// regular expression does with backtracking.
type scanner func(t *[classTableSize]class, s string, i int) int

// The patterns as published tokenizer.json files spell them.
const (
	patGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	patLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patO200kWords = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	patTekkenWord = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	patO200kTail  = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patDigits1to3   = `\p{N}{1,3}`
	patCJK          = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
	patDeepSeekV3   = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patWhitespaceRE = `\s+`
)

var knownScanners = map[string]scanner{
	patGPT2:   scanGPT2,
	patLlama3: func(t *[classTableSize]class, s string, i int) int { return scanLlama3(t, s, i, 3) },
	patQwen2:  func(t *[classTableSize]class, s string, i int) int { return scanLlama3(t, s, i, 1) },
	patO200kWords + `|\p{N}{1,3}|` + patO200kTail: func(t *[classTableSize]class, s string, i int) int {
		return scanO200k(t, s, i, 3, true)
	},
	patTekkenWord + `|\p{N}|` + patO200kTail: func(t *[classTableSize]class, s string, i int) int {
		return scanO200k(t, s, i, 1, false)
	},
	patDigits1to3: func(t *[classTableSize]class, s string, i int) int {
		if j := runOf(t, s, i, clNumber, 0, 3); j > i {
			return j
		}
		return -1
	},
	patCJK:        scanCJK,
	patDeepSeekV3: scanDeepSeekV3,
	patWhitespaceRE: func(t *[classTableSize]class, s string, i int) int {
		return notEmpty(i, runOf(t, s, i, clSpace, 0, -1))
	},
}

func notEmpty(i, j int) int {
	if j > i {
		return j
	}
	return -1
}

// at decodes the character at byte i and its class; size 0 is the end.
func at(t *[classTableSize]class, s string, i int) (r rune, c class, size int) {
	if i >= len(s) {
		return 0, 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return rune(b), t[b], 1
	}
	r, size = utf8.DecodeRuneInString(s[i:])
	return r, classOf(t, r), size
}

// runOf returns the end of the longest run from byte i of characters that have
// a class of want (any, where want is 0) and none of not; limit bounds the
// number of characters, -1 does not.
func runOf(t *[classTableSize]class, s string, i int, want, not class, limit int) int {
	for limit != 0 && i < len(s) {
		var c class
		n := 1
		if b := s[i]; b < utf8.RuneSelf {
			c = t[b]
		} else {
			_, c, n = at(t, s, i)
		}
		if c&not != 0 || want != 0 && c&want == 0 {
			break
		}
		i += n
		limit--
	}
	return i
}

// scanSpaces does the tail that the GPT patterns share: \s*[\r\n]+ (only where
// newlines is set), \s+(?!\S), \s+.
func scanSpaces(t *[classTableSize]class, s string, i int, newlines bool) int {
	j, last, nl := i, i, -1 // end of the run, start of its last character, end of its last newline
	for j < len(s) {
		r, c, n := at(t, s, j)
		if c&clSpace == 0 {
			break
		}
		last = j
		j += n
		if r == '\n' || r == '\r' {
			nl = j
		}
	}
	switch {
	case j == i:
		return -1
	case newlines && nl >= 0:
		return nl
	case j == len(s) || last == i:
		return j
	}
	return last // the last space goes to the word behind
}

// contraction returns the end of 's 't 're 've 'm 'll 'd at byte i, or i. With
// fold, case does not matter, and ſ (which folds to s) counts as s.
func contraction(s string, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	lower := func(b byte) byte {
		if fold && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch c := lower(s[i+1]); c {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 < len(s) {
			if d := lower(s[i+2]); c == 'l' && d == 'l' || c != 'l' && d == 'e' {
				return i + 3
			}
		}
	case 0xC5:
		if fold && i+2 < len(s) && s[i+2] == 0xBF {
			return i + 3
		}
	}
	return i
}

func scanGPT2(t *[classTableSize]class, s string, i int) int {
	if j := contraction(s, i, false); j > i {
		return j
	}
	r, c, n := at(t, s, i)
	j := i
	if r == ' ' {
		j += n
		_, c, n = at(t, s, j)
		if n == 0 {
			return j
		}
	}
	switch {
	case c&clLetter != 0:
		return runOf(t, s, j+n, clLetter, 0, -1)
	case c&clNumber != 0:
		return runOf(t, s, j+n, clNumber, 0, -1)
	case c&clSpace == 0:
		return runOf(t, s, j+n, 0, clSpace|clLetter|clNumber, -1)
	}
	return scanSpaces(t, s, i, false)
}

// scanLlama3 is the pattern of Llama 3 (cl100k) with digits 3, of Qwen 2 with
// digits 1.
func scanLlama3(t *[classTableSize]class, s string, i, digits int) int {
	if s[i] == '\'' {
		if j := contraction(s, i, true); j > i {
			return j
		}
	}
	r, c, n := at(t, s, i)
	switch {
	case c&clLetter != 0:
		return runOf(t, s, i+n, clLetter, 0, -1)
	case c&clNumber != 0:
		return runOf(t, s, i, clNumber, 0, digits)
	}
	_, c2, n2 := at(t, s, i+n)
	if r != '\r' && r != '\n' && n2 > 0 && c2&clLetter != 0 {
		return runOf(t, s, i+n+n2, clLetter, 0, -1)
	}
	return scanTail(t, s, i, r, c, n, c2, n2, false)
}

// scanTail does ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` at byte i,
// where the character r of class c and size n stands and behind it one of class
// c2 and size n2; slash lets / stand among the newlines.
func scanTail(t *[classTableSize]class, s string, i int, r rune, c class, n int, c2 class, n2 int, slash bool) int {
	const no = clSpace | clLetter | clNumber
	if c&clSpace != 0 {
		if r != ' ' || n2 == 0 || c2&no != 0 {
			return scanSpaces(t, s, i, true)
		}
		n += n2
	}
	j := runOf(t, s, i+n, 0, no, -1)
	for j < len(s) && (s[j] == '\n' || s[j] == '\r' || slash && s[j] == '/') {
		j++
	}
	return j
}

// scanO200k is the pattern of GPT-4o (digits 3, contractions) and of Mistral's
// Tekken (digits 1, none).
func scanO200k(t *[classTableSize]class, s string, i, digits int, contractions bool) int {
	r, c, n := at(t, s, i)
	_, c2, n2 := at(t, s, i+n)
	prefix := r != '\r' && r != '\n' && c&(clLetter|clNumber) == 0
	// Each of the two alternatives is tried with the prefix character, then
	// without it, before the next.
	j := -1
	if prefix && n2 > 0 {
		j = capsThenSmall(t, s, i+n)
	}
	if j < 0 {
		j = capsThenSmall(t, s, i)
	}
	if j < 0 && prefix && c2&clUpper != 0 {
		j = runOf(t, s, i+n, clUpper, 0, -1)
	}
	if j < 0 && c&clUpper != 0 {
		j = runOf(t, s, i, clUpper, 0, -1)
	}
	if j >= 0 {
		// Small letters behind the capitals would have been taken by the first
		// alternative already.
		if contractions {
			j = contraction(s, j, true)
		}
		return j
	}
	if c&clNumber != 0 {
		return runOf(t, s, i, clNumber, 0, digits)
	}
	return scanTail(t, s, i, r, c, n, c2, n2, true)
}

// capsThenSmall is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ at
// byte i, or -1.
func capsThenSmall(t *[classTableSize]class, s string, i int) int {
	end := -1 // of the last character that may be of either kind
	for i < len(s) {
		_, c, n := at(t, s, i)
		if c&clUpper == 0 {
			if c&clLower != 0 {
				return runOf(t, s, i, clLower, 0, -1)
			}
			break
		}
		i += n
		if c&clLower != 0 {
			end = i
		}
	}
	return end
}

func scanCJK(_ *[classTableSize]class, s string, i int) int {
	j := i
	for j < len(s) {
		r, n := utf8.DecodeRuneInString(s[j:])
		if !(r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF) {
			break
		}
		j += n
	}
	return notEmpty(i, j)
}

func scanDeepSeekV3(t *[classTableSize]class, s string, i int) int {
	r, c, n := at(t, s, i)
	r2, c2, n2 := at(t, s, i+n)
	if isPunctRune(r) && r < utf8.RuneSelf && isASCIILetter(r2) {
		j := i + n + n2
		for j < len(s) && isASCIILetter(rune(s[j])) {
			j++
		}
		return j
	}
	const word = clLetter | clMark
	if r != '\r' && r != '\n' && c&(clLetter|clPunct|clSymbol) == 0 && n2 > 0 && c2&word != 0 {
		return runOf(t, s, i+n, word, 0, -1)
	}
	if c&word != 0 {
		return runOf(t, s, i, word, 0, -1)
	}
	const mark = clPunct | clSymbol
	j := i
	if r == ' ' && n2 > 0 && c2&mark != 0 {
		j += n
	}
	if k := runOf(t, s, j, mark, 0, -1); k > j {
		for k < len(s) && (s[k] == '\n' || s[k] == '\r') {
			k++
		}
		return k
	}
	return scanSpaces(t, s, i, true)
}

func isASCIILetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// scanWords is \w+|[^\w\s]+, the pre-tokenizer Whitespace.
func scanWords(t *[classTableSize]class, s string, i int) int {
	if j := runOf(t, s, i, clWord, 0, -1); j > i {
		return j
	}
	return notEmpty(i, runOf(t, s, i, 0, clWord|clSpace, -1))
}

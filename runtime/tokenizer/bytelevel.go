package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Byte-level tokenizers write each byte as a character that can be seen: those
// of Latin-1 that are visible stand for themselves, the other 68 bytes follow
// from U+0100 on. (GPT-2's bytes_to_unicode.)
var (
	byteToRune [256]rune
	runeToByte [0x100 + 68]int16 // -1 where a character stands for no byte
)

func init() {
	next := rune(0x100)
	for i := range runeToByte {
		runeToByte[i] = -1
	}
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = int16(b)
	}
}

// byteLevelText writes every byte of s as its character.
func byteLevelText(s string) string {
	var b strings.Builder
	b.Grow(2 * len(s))
	for i := range len(s) {
		b.WriteRune(byteToRune[s[i]])
	}
	return b.String()
}

// byteLevelBytes is the way back; ok is false where a character stands for no
// byte.
func byteLevelBytes(dst []byte, s string) (b []byte, ok bool) {
	b = dst
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if int(r) >= len(runeToByte) || runeToByte[r] < 0 {
			return dst, false
		}
		b = append(b, byte(runeToByte[r]))
		i += n
	}
	return b, true
}

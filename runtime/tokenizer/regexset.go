package tokenizer

import (
	"fmt"
	"strings"
)

// charSet is a bracket expression: the union of some simple items and of other
// sets, intersected with further sets, perhaps negated.
type charSet struct {
	negate bool
	items  string     // what a plain bracket of regexp2 can hold
	sets   []*charSet // sets within that cannot be written among the items
	and    *charSet   // && with what follows
}

// plain reports whether one bracket says it all.
func (s *charSet) plain() bool { return len(s.sets) == 0 && s.and == nil }

// atom writes the set as an expression that takes exactly one character.
func (s *charSet) atom() string {
	if s.plain() {
		switch {
		case s.items != "" && s.negate:
			return "[^" + s.items + "]"
		case s.items != "":
			return "[" + s.items + "]"
		case s.negate:
			return `[\s\S]`
		}
		return `(?!)`
	}
	var alts []string
	if s.items != "" {
		alts = append(alts, "["+s.items+"]")
	}
	for _, x := range s.sets {
		alts = append(alts, x.atom())
	}
	out := "(?:" + strings.Join(alts, "|") + ")"
	if len(alts) == 0 {
		out = `(?!)`
	}
	if s.and != nil {
		out = "(?:(?=" + s.and.atom() + ")" + out + ")"
	}
	if s.negate {
		out = "(?:(?!" + out + `)[\s\S])`
	}
	return out
}

var posixSets = map[string]string{
	"alpha": `\p{L}\p{Nl}\p{Other_Alphabetic}`,
	"digit": `\p{Nd}`,
	"alnum": `\p{L}\p{Nl}\p{Other_Alphabetic}\p{Nd}`,
	"space": `\s`,
	"upper": `\p{Lu}\p{Other_Uppercase}`,
	"lower": `\p{Ll}\p{Other_Lowercase}`,
	"punct": `\p{P}\p{S}`,
	"cntrl": `\p{Cc}`,
	"blank": `\p{Zs}\t`,
	"word":  setWord, "xdigit": setHex,
	"ascii": `\x00-\x7F`,
}

// set translates a bracket expression; the opening [ is taken.
func (t *translator) set() (*charSet, error) {
	if t.depth++; t.depth > maxRegexDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxRegexDepth)
	}
	defer func() { t.depth-- }()
	start := t.pos - 1
	top := &charSet{negate: t.take("^")}
	cur := top
	for first := true; ; first = false {
		switch {
		case !t.more():
			return nil, fmt.Errorf("bracket at byte %d is not closed", start)
		case t.has("]") && !first:
			t.pos++
			return top, nil
		case t.take("&&"):
			next := &charSet{}
			cur.and = next
			cur = next
		case t.has("[:"):
			end := strings.Index(t.in[t.pos:], ":]")
			name, not := "", false
			if end > 0 {
				name, not = strings.CutPrefix(t.in[t.pos+2:t.pos+end], "^")
			}
			set, ok := posixSets[name]
			if !ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" {
				return nil, fmt.Errorf("[:%s:] at byte %d is not supported", name, t.pos)
			}
			if !ok { // no POSIX bracket: a set within
				if err := t.inner(cur); err != nil {
					return nil, err
				}
				continue
			}
			t.pos += end + 2
			if not {
				cur.sets = append(cur.sets, &charSet{negate: true, items: set})
			} else {
				cur.items += set
			}
		case t.has("["):
			if err := t.inner(cur); err != nil {
				return nil, err
			}
		default:
			if err := t.item(cur); err != nil {
				return nil, err
			}
		}
	}
}

// inner takes a set within a set.
func (t *translator) inner(cur *charSet) error {
	t.pos++
	in, err := t.set()
	if err != nil {
		return err
	}
	if in.plain() && !in.negate {
		cur.items += in.items
	} else {
		cur.sets = append(cur.sets, in)
	}
	return nil
}

// item takes a character, an escape or a range.
func (t *translator) item(cur *charSet) error {
	one := func() (string, error) {
		if t.take(`\`) {
			switch {
			case t.has("W"), t.has("H"):
				set := setWord
				if t.has("H") {
					set = setHex
				}
				t.pos++
				cur.sets = append(cur.sets, &charSet{negate: true, items: set})
				return "", nil
			case t.take("b"):
				return `\x08`, nil
			}
			return t.escape(true)
		}
		return literalRune(t.char()), nil
	}
	lo, err := one()
	if err != nil {
		return err
	}
	cur.items += lo
	if t.has("-") && !t.has("-]") && !t.has("-[") && !t.has("-&&") && lo != "" && !isClassEscape(lo) {
		t.pos++
		hi, err := one()
		if err != nil {
			return err
		}
		if isClassEscape(hi) {
			cur.items += `\-` + hi
		} else {
			cur.items += "-" + hi
		}
	}
	return nil
}

// isClassEscape reports whether an item stands for many characters and so cannot
// be an end of a range.
func isClassEscape(s string) bool {
	return len(s) > 3 && s[0] == '\\' && (s[1] == 'p' || s[1] == 'P') || s == `\s` || s == `\S` || s == `\d` || s == `\D` ||
		s == setWord || s == setHex
}

package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// convert is one conversion of str % value: flags, width and precision, verb.
func (it *interp) convert(flags string, verb byte, v Value) string {
	width, prec, has := strings.Cut(strings.TrimLeft(flags, "#0- +"), ".")
	n, _ := strconv.Atoi(width)
	p, _ := strconv.Atoi(prec)
	if n > 1<<16 || p > 1<<16 || len(width) > 6 || len(prec) > 6 {
		fail(LimitErr, "format width %s is too large", strRepr(flags))
	}
	it.alloc(4*n + p)
	flags = flags[:len(flags)-len(strings.TrimLeft(flags, "#0- +"))]
	fine(v)
	var s string
	switch verb {
	case 's', 'r', 'a':
		s = it.str(v)
		if verb != 's' {
			s = it.reprString(v)
		}
		if has && utf8.RuneCountInString(s) > p {
			s = string([]rune(s)[:p])
		}
		flags = strings.ReplaceAll(flags, "0", "")
	case 'd', 'i', 'u', 'x', 'X', 'o':
		i := it.truncate(verb, v)
		base := map[byte]int{'x': 16, 'X': 16, 'o': 8}[verb]
		s = strconv.FormatInt(i, max(base, 2))
		if base == 0 {
			s = strconv.FormatInt(i, 10)
		}
		if verb == 'X' {
			s = strings.ToUpper(s)
		}
		if strings.Contains(flags, "+") && i >= 0 {
			s = "+" + s
		}
	case 'f', 'F', 'e', 'E', 'g', 'G':
		f, ok := asFloat(v)
		if !ok {
			fail(TypeErr, "must be real number, not %s", typeName(v))
		}
		if !has {
			p = 6
		}
		s = fmt.Sprintf("%."+strconv.Itoa(p)+string(rune(verb)), f)
		if strings.Contains(flags, "+") && f >= 0 {
			s = "+" + s
		}
	case 'c':
		if i, ok := asInt(v); ok {
			s = string(rune(i))
		} else {
			s = text("%c", v)
		}
	default:
		fail(ValueErr, "unsupported format character '%c'", verb)
	}
	pad := n - utf8.RuneCountInString(s)
	switch {
	case pad <= 0:
		return s
	case strings.Contains(flags, "-"):
		return s + strings.Repeat(" ", pad)
	case strings.Contains(flags, "0"):
		sign := ""
		if s != "" && (s[0] == '-' || s[0] == '+') {
			sign, s = s[:1], s[1:]
		}
		return sign + strings.Repeat("0", pad) + s
	}
	return strings.Repeat(" ", pad) + s
}

func (it *interp) truncate(verb byte, v Value) int64 {
	if i, ok := asInt(v); ok {
		return i
	}
	if f, ok := v.(float64); ok && math.Abs(f) < 1<<62 && strings.IndexByte("diu", verb) >= 0 {
		return int64(f)
	}
	fail(TypeErr, "%%%c format: a real number is required, not %s", verb, typeName(v))
	return 0
}

// toInt is the int filter without its default.
func toInt(v Value, base int) (Value, bool) {
	switch x := v.(type) {
	case *big.Int:
		return x, true
	case float64:
		if math.IsNaN(x) || math.Abs(x) >= 1<<62 {
			return nil, false
		}
		return int64(x), true
	}
	if i, ok := asInt(v); ok {
		return i, true
	}
	s, ok := asString(v)
	if !ok {
		return nil, false
	}
	s = strings.TrimFunc(s, isSpace)
	if base != 10 {
		t := strings.ToLower(s)
		for prefix, b := range map[string]int{"0x": 16, "0o": 8, "0b": 2} {
			if b == base {
				s = strings.TrimPrefix(t, prefix)
			}
		}
	}
	if i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), base, 64); err == nil {
		return i, true
	}
	if b, ok := new(big.Int).SetString(strings.ReplaceAll(s, "_", ""), base); ok && len(s) <= maxJSONDigits {
		return b, true
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && base == 10 {
		return toInt(f, 10)
	}
	return nil, false
}

func toFloat(v Value) (float64, bool) {
	if s, ok := asString(v); ok {
		f, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64)
		return f, err == nil || math.IsInf(f, 0)
	}
	return asFloat(v)
}

// strftime formats as C's strftime in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		trim := format[i] == '-' && i+1 < len(format)
		if trim {
			i++
		}
		s, ok := directive(t, format[i])
		switch {
		case !ok:
			s = "%" + format[i:i+1]
		case trim:
			s = strings.TrimLeft(s, "0 ")
			if s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

func directive(t time.Time, c byte) (string, bool) {
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'm': "01", 'y': "06", 'Y': "2006",
		'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002",
		'F': "2006-01-02", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'x': "01/02/06", 'c': "Mon Jan _2 15:04:05 2006", 'r': "03:04:05 PM",
	}
	if l, ok := layouts[c]; ok {
		return t.Format(l), true
	}
	year, week := t.ISOWeek()
	wd := int(t.Weekday())
	switch c {
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'w':
		return strconv.Itoa(wd), true
	case 'u':
		return strconv.Itoa((wd+6)%7 + 1), true
	case 'G':
		return strconv.Itoa(year), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-wd)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(wd+6)%7)/7), true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'Z', 'z': // datetime.now() has no zone
		return "", true
	case '%':
		return "%", true
	}
	return "", false
}

package api

import (
	"encoding/json/jsontext"
	"math"
	"strconv"
	"strings"
)

// fields reads an object's members by name and type. The first fault is kept
// with its path, and later reads return zero values: a decoder reads all it
// wants and asks for the error once. null counts as absent.
type fields struct {
	path  string // of the object, "" at the top
	obj   value
	index map[string]int
	used  map[string]bool
	fault *fault // shared with the objects inside
}

type fault struct{ err *apiError }

// readObject starts reading the body's top-level object.
func readObject(v value) (*fields, error) {
	if v.kind != jsontext.KindBeginObject {
		return nil, badBody("the body is %s; a JSON object is wanted", v.kindName())
	}
	return newFields("", v, new(fault)), nil
}

func newFields(path string, v value, f *fault) *fields {
	return &fields{path: path, obj: v, index: v.lastIndex(), used: map[string]bool{}, fault: f}
}

func (f *fields) err() error {
	if f.fault.err == nil {
		return nil
	}
	return f.fault.err
}

// at is the path of a member.
func (f *fields) at(name string) string { return joinPath(f.path, name) }

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (f *fields) bad(name, format string, args ...any) {
	f.fail(badField(f.at(name), format, args...))
}

func (f *fields) fail(err *apiError) {
	if f.fault.err == nil {
		f.fault.err = err
	}
}

// get returns a member, absent when it is not there or null.
func (f *fields) get(name string) value {
	f.used[name] = true
	if i, ok := f.index[name]; ok && !f.obj.kids.values[i].absent() {
		return f.obj.kids.values[i]
	}
	return value{}
}

// has tells whether a member is there and not null.
func (f *fields) has(name string) bool { return !f.get(name).absent() }

// ignore marks members as known although they have no effect.
func (f *fields) ignore(names ...string) {
	for _, name := range names {
		f.used[name] = true
	}
}

// unknown lists the members that nobody asked for.
func (f *fields) unknown() []string {
	var names []string
	for _, name := range f.obj.names() {
		if !f.used[name] {
			names = append(names, name)
			f.used[name] = true
		}
	}
	return names
}

func (f *fields) wrongType(name string, v value, want string) {
	f.bad(name, "%s is wanted, not %s", want, v.kindName())
}

func (f *fields) str(name string) (string, bool) {
	v := f.get(name)
	if v.absent() {
		return "", false
	}
	if v.kind != jsontext.KindString {
		f.wrongType(name, v, "a string")
		return "", false
	}
	return v.text, true
}

func (f *fields) boolean(name string, def bool) bool {
	switch v := f.get(name); {
	case v.absent():
		return def
	case v.kind == jsontext.KindTrue:
		return true
	case v.kind == jsontext.KindFalse:
		return false
	default:
		f.wrongType(name, v, "a boolean")
		return def
	}
}

// integer reads a whole number in lo..hi; 5.0 and 5e0 are whole numbers.
func (f *fields) integer(name string, lo, hi int64) (int64, bool) {
	v := f.get(name)
	if v.absent() {
		return 0, false
	}
	n, err := integerIn(v, f.at(name), lo, hi)
	if err != nil {
		f.fail(err)
		return 0, false
	}
	return n, true
}

func integerIn(v value, path string, lo, hi int64) (int64, *apiError) {
	if v.kind != jsontext.KindNumber {
		return 0, badField(path, "an integer is wanted, not %s", v.kindName())
	}
	n, ok := wholeNumber(v.text)
	if !ok {
		return 0, badField(path, "an integer is wanted, not %s", clip(v.text))
	}
	if n < lo || n > hi {
		return 0, badField(path, "%d is out of range: %s", n, rangeText(lo, hi))
	}
	return n, nil
}

func rangeText(lo, hi int64) string {
	switch {
	case hi == math.MaxInt64 && lo == math.MinInt64:
		return "it must fit 64 bits"
	case hi == math.MaxInt64:
		return "it must be at least " + strconv.FormatInt(lo, 10)
	}
	return "it must be " + strconv.FormatInt(lo, 10) + " to " + strconv.FormatInt(hi, 10)
}

// wholeNumber reads a JSON number that is an integer of 64 bits.
func wholeNumber(text string) (int64, bool) {
	if !strings.ContainsAny(text, "eE") {
		whole, fraction, _ := strings.Cut(text, ".")
		n, err := strconv.ParseInt(whole, 10, 64)
		return n, err == nil && strings.Trim(fraction, "0") == ""
	}
	x, err := strconv.ParseFloat(text, 64)
	// From 2^53 on a float no longer says which integer was meant.
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// number reads a finite number in lo..hi.
func (f *fields) number(name string, lo, hi float64) (float64, bool) {
	v := f.get(name)
	if v.absent() {
		return 0, false
	}
	x, err := numberIn(v, f.at(name), lo, hi)
	if err != nil {
		f.fail(err)
		return 0, false
	}
	return x, true
}

func numberIn(v value, path string, lo, hi float64) (float64, *apiError) {
	if v.kind != jsontext.KindNumber {
		return 0, badField(path, "a number is wanted, not %s", v.kindName())
	}
	x, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, badField(path, "%s is no number that can be used", clip(v.text))
	}
	if x < lo || x > hi {
		if math.IsInf(hi, 1) {
			return 0, badField(path, "%v is out of range: it must be at least %v", x, lo)
		}
		return 0, badField(path, "%v is out of range: it must be %v to %v", x, lo, hi)
	}
	return x, nil
}

// array returns an array's values.
func (f *fields) array(name string) ([]value, bool) {
	v := f.get(name)
	if v.absent() {
		return nil, false
	}
	if v.kind != jsontext.KindBeginArray {
		f.wrongType(name, v, "an array")
		return nil, false
	}
	return v.list(), true
}

// object returns the reader of an object inside.
func (f *fields) object(name string) (*fields, bool) {
	v := f.get(name)
	if v.absent() {
		return nil, false
	}
	if v.kind != jsontext.KindBeginObject {
		f.wrongType(name, v, "an object")
		return nil, false
	}
	return newFields(f.at(name), v, f.fault), true
}

// element returns the reader of an object at place i of the array name.
func (f *fields) element(name string, i int, v value) (*fields, bool) {
	path := f.at(name) + "." + strconv.Itoa(i)
	if v.kind != jsontext.KindBeginObject {
		f.fail(badField(path, "an object is wanted, not %s", v.kindName()))
		return nil, false
	}
	return newFields(path, v, f.fault), true
}

// stringOrList reads a string, or an array of strings.
func (f *fields) stringOrList(name string) ([]string, bool) {
	v := f.get(name)
	switch v.kind {
	case jsontext.KindString:
		return []string{v.text}, true
	case jsontext.KindBeginArray:
		return f.strings(name)
	case 0:
		return nil, false
	}
	f.wrongType(name, v, "a string or an array of strings")
	return nil, false
}

func (f *fields) strings(name string) ([]string, bool) {
	list, ok := f.array(name)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, v := range list {
		if v.kind != jsontext.KindString {
			f.fail(badField(f.at(name), "entry %d: a string is wanted, not %s", i, v.kindName()))
			return nil, false
		}
		out[i] = v.text
	}
	return out, true
}

// ids reads an array of token ids of a vocabulary of the given size.
func (f *fields) ids(name string, vocab int) ([]int32, bool) {
	list, ok := f.array(name)
	if !ok {
		return nil, false
	}
	out, err := idList(list, f.at(name), vocab)
	if err != nil {
		f.fail(err)
		return nil, false
	}
	return out, true
}

func idList(list []value, path string, vocab int) ([]int32, *apiError) {
	out := make([]int32, len(list))
	for i, v := range list {
		if v.kind != jsontext.KindNumber {
			return nil, badField(path, "entry %d: a token id is wanted, not %s", i, v.kindName())
		}
		n, ok := wholeNumber(v.text)
		if !ok || n < 0 || n >= int64(vocab) {
			return nil, badField(path, "entry %d: %s is no token id of this model: they are 0 to %d", i, clip(v.text), vocab-1)
		}
		out[i] = int32(n)
	}
	return out, nil
}

// clip shortens a client's text for use in a message.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

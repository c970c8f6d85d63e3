package loader

import (
	"bufio"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// decoder reads strict JSON: names are unique, text is valid UTF-8, nesting is
// bounded (by jsontext), and so is the length of a token.
type decoder struct {
	*jsontext.Decoder
	base int64 // of the JSON in its file, for messages

	// Of the tensor being read; the buffers serve one after the other.
	shape, offsets []int64
	shapeBuf       []int64
	offsetBuf      [2]int64
	dims           int // read so far
}

func newDecoder(r io.Reader, base int64) *decoder {
	lim := &tokenLimit{r: bufio.NewReaderSize(r, 64<<10)}
	lim.d = jsontext.NewDecoder(lim)
	return &decoder{Decoder: lim.d, base: base}
}

var errLongToken = fmt.Errorf("%d bytes without the end of a JSON token", maxToken)

// tokenLimit ends the input when a token has grown beyond maxToken, so that no
// buffer does.
type tokenLimit struct {
	r    io.Reader
	d    *jsontext.Decoder
	read int64
}

func (l *tokenLimit) Read(p []byte) (int, error) {
	if l.read-l.d.InputOffset() > maxToken {
		return 0, errLongToken
	}
	n, err := l.r.Read(p[:min(len(p), 64<<10)]) // p may be much larger
	l.read += int64(n)
	return n, err
}

// wrap turns jsontext's errors into ones with the place in the file.
func (d *decoder) wrap(err error) error {
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		in := ""
		if se.JSONPointer != "" {
			in = " in " + quote(string(se.JSONPointer))
		}
		return fmt.Errorf("invalid JSON at byte %d%s: %w", d.base+se.ByteOffset, in, se.Err)
	}
	at := d.base + d.InputOffset()
	if errors.Is(err, errLongToken) {
		return fmt.Errorf("after byte %d: %w", at, errLongToken)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("invalid JSON at byte %d: %w", at, io.ErrUnexpectedEOF)
	}
	return err
}

var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// want makes sure that what comes next is of kind k, unless it is no JSON,
// which reading it will tell better.
func (d *decoder) want(k jsontext.Kind) error {
	if got := d.PeekKind(); got != k && kinds[got] != "" {
		return fmt.Errorf("is %s, want %s", kinds[got], kinds[k])
	}
	return nil
}

// expect reads a token of kind k.
func (d *decoder) expect(k jsontext.Kind) (jsontext.Token, error) {
	if err := d.want(k); err != nil {
		return jsontext.Token{}, err
	}
	tok, err := d.ReadToken()
	if err != nil {
		return tok, d.wrap(err)
	}
	return tok, nil
}

// object reads an object; member must read the value that follows the name.
func (d *decoder) object(member func(name string) error) error {
	if _, err := d.expect('{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return d.wrap(err)
		}
		if err := member(unquote(name)); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return d.wrap(err)
	}
	return nil
}

// unquote a valid JSON string; the names of the format need no memory.
func unquote(v jsontext.Value) string {
	for _, name := range [...]string{`"dtype"`, `"shape"`, `"data_offsets"`} {
		if string(v) == name {
			return name[1 : len(name)-1]
		}
	}
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

func (d *decoder) str() (string, error) {
	tok, err := d.expect('"')
	if err != nil {
		return "", err
	}
	return tok.String(), nil
}

// ints reads an array of at most most integers in 0..2^63-1 into v, which is
// never nil afterwards.
func (d *decoder) ints(v []int64, most int) ([]int64, error) {
	if v == nil {
		v = []int64{}
	}
	if _, err := d.expect('['); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		if err := d.want('0'); err != nil {
			return nil, err
		}
		text, err := d.ReadValue()
		if err != nil {
			return nil, d.wrap(err)
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || text[0] == '-' {
			return nil, fmt.Errorf("%s is not an integer from 0 to 2^63-1", clip(string(text)))
		}
		if len(v) == most {
			return nil, fmt.Errorf("more than %d numbers", most)
		}
		v = append(v, n)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, d.wrap(err)
	}
	return v, nil
}

func (d *decoder) skip() error {
	if err := d.SkipValue(); err != nil {
		return d.wrap(err)
	}
	return nil
}

// end makes sure that only white space follows.
func (d *decoder) end() error {
	_, err := d.ReadToken()
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if err != nil {
		return d.wrap(err)
	}
	return fmt.Errorf("invalid JSON at byte %d: more text after the object", d.base+d.InputOffset())
}

// quote makes a name from a file fit for a message: quoted, and not too long.
func quote(s string) string {
	if len(s) > 120 {
		return strconv.Quote(s[:120]) + "…"
	}
	return strconv.Quote(s)
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

package api

import "strings"

// Models that reason put it in front of the answer, between these tags. The
// chat template may have written the first one already.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	lineBreaks = "\r\n"
	whiteSpace = " \t" + lineBreaks
)

// opensThinking tells whether a prompt ends inside a reasoning block.
func opensThinking(prompt string) bool {
	return strings.HasSuffix(strings.TrimRight(prompt, whiteSpace), thinkOpen)
}

// splitter parts an answer's text into reasoning and content, however it is
// cut. Line breaks directly inside the tags and white space directly behind the
// block are dropped; all else is kept as it is.
type splitter struct {
	state splitState
	held  string
	again bool // a first tag inside the block may be the model's repetition of the template's
}

type splitState int

const (
	splitContent splitState = iota // all is content: the block is over, or there is none
	splitStart                     // the text may open a block
	splitOpened                    // directly behind the first tag
	splitInside
	splitClosed // directly behind the last tag
)

// newSplitter starts inside a block when the prompt opened one.
func newSplitter(open bool) *splitter {
	if open {
		return &splitter{state: splitOpened, again: true}
	}
	return &splitter{state: splitStart}
}

func (s *splitter) inside() bool { return s.state == splitOpened || s.state == splitInside }

// push takes the next text and returns what is certain.
func (s *splitter) push(text string) (reasoning, content string) {
	s.held += text
	for {
		switch s.state {
		case splitContent:
			content, s.held = s.held, ""
			return reasoning, content
		case splitStart:
			rest := strings.TrimLeft(s.held, whiteSpace)
			switch {
			case strings.HasPrefix(rest, thinkOpen):
				s.held, s.state = rest[len(thinkOpen):], splitOpened
			case strings.HasPrefix(thinkOpen, rest):
				return reasoning, content // more is needed to tell
			default:
				s.state = splitContent
			}
		case splitOpened:
			s.held = strings.TrimLeft(s.held, lineBreaks)
			switch {
			case s.again && strings.HasPrefix(s.held, thinkOpen):
				s.held, s.again = s.held[len(thinkOpen):], false
			case s.held == "" || s.again && strings.HasPrefix(thinkOpen, s.held):
				return reasoning, content
			default:
				s.state = splitInside
			}
		case splitInside:
			if at := strings.Index(s.held, thinkClose); at >= 0 {
				reasoning += strings.TrimRight(s.held[:at], lineBreaks)
				s.held, s.state = s.held[at+len(thinkClose):], splitClosed
				continue
			}
			n := len(strings.TrimRight(s.held[:len(s.held)-partialSuffix(s.held, thinkClose)], lineBreaks))
			reasoning += s.held[:n]
			s.held = s.held[n:]
			return reasoning, content
		case splitClosed:
			s.held = strings.TrimLeft(s.held, whiteSpace)
			if s.held == "" {
				return reasoning, content
			}
			s.state = splitContent
		}
	}
}

// flush ends the text: what was held belongs where it stood.
func (s *splitter) flush() (reasoning, content string) {
	held := s.held
	s.held = ""
	if s.inside() {
		return held, ""
	}
	return "", held
}

// partialSuffix is the length of the longest end of text that begins mark
// without being all of it.
func partialSuffix(text, mark string) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

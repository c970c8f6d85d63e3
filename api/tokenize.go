package api

import (
	"encoding/json/jsontext"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// POST /tokenize in llama-server's form (content) and in vLLM's (prompt, or
// messages); the answer serves both.

type tokenized struct {
	Tokens      any      `json:"tokens"` // ids, or pieces
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	TokenStrs   []string `json:"token_strs,omitzero"`
}

type piece struct {
	ID    int32 `json:"id"`
	Piece any   `json:"piece"` // text, or a list of bytes where it is none
}

func (s *Server) tokenize(c *gin.Context) {
	s.plain(c, func(m *Model, f *fields) (any, error) {
		ids, err := tokenizeBody(c, m, f)
		if err != nil {
			return nil, err
		}
		answer := tokenized{Tokens: ids, Count: len(ids), MaxModelLen: m.Context}
		if f.boolean("with_pieces", false) {
			pieces := make([]piece, len(ids))
			for i, id := range ids {
				pieces[i] = piece{id, pieceOf(m.Tokenizer, id)}
			}
			answer.Tokens = pieces
		}
		if f.boolean("return_token_strs", false) {
			answer.TokenStrs = make([]string, len(ids))
			for i, id := range ids {
				answer.TokenStrs[i], _ = m.Tokenizer.Token(id)
			}
		}
		return answer, f.err()
	})
}

func tokenizeBody(c *gin.Context, m *Model, f *fields) ([]int32, error) {
	if _, err := m.checkName(f); err != nil {
		return nil, err
	}
	encode := func(text string, special bool) []int32 {
		if f.boolean("parse_special", true) {
			return m.Tokenizer.Encode(text, special)
		}
		return m.Tokenizer.EncodePlain(text, special)
	}
	var ids []int32
	switch {
	case f.has("messages"):
		cv := readConversation(f, m)
		if err := f.err(); err != nil {
			return nil, err
		}
		ids, _, err := cv.tokenize(c.Request.Context(), m)
		return ids, err
	case f.has("content"):
		m.needText(f, "content")
		text, _ := f.str("content")
		ids = encode(text, f.boolean("add_special", false))
	case f.has("prompt"):
		m.needText(f, "prompt")
		text, _ := f.str("prompt")
		ids = encode(text, f.boolean("add_special_tokens", true))
	default:
		f.bad("content", "one of content, prompt or messages is required")
	}
	if ids == nil {
		ids = []int32{}
	}
	return ids, f.err()
}

func pieceOf(tok Tokenizer, id int32) any {
	b := tok.TokenBytes(id)
	if text := string(b); strings.ToValidUTF8(text, "") == text {
		return text
	}
	return byteList(tok, id)
}

// POST /detokenize

type detokenized struct {
	Content string `json:"content"` // llama-server's name
	Prompt  string `json:"prompt"`  // vLLM's
}

func (s *Server) detokenize(c *gin.Context) {
	s.plain(c, func(m *Model, f *fields) (any, error) {
		if _, err := m.checkName(f); err != nil {
			return nil, err
		}
		if v := f.get("tokens"); v.absent() || v.kind != jsontext.KindBeginArray {
			f.bad("tokens", "it is required: an array of token ids")
		}
		ids, _ := f.ids("tokens", m.Vocab)
		if err := f.err(); err != nil {
			return nil, err
		}
		text := m.Tokenizer.Decode(ids, false)
		return detokenized{text, text}, nil
	})
}

// plain is the frame of routes that answer from the model's files alone.
func (s *Server) plain(c *gin.Context, answer func(*Model, *fields) (any, error)) {
	m, err := s.loaded(c.Request.Context())
	var out any
	if err == nil {
		err = s.withBody(c, func(f *fields) (err error) {
			out, err = answer(m, f)
			return err
		})
	}
	if err != nil {
		s.fail(c, s.asAPIError(c.Request.Context(), err, "content"))
		return
	}
	s.writeJSON(c, http.StatusOK, out)
}

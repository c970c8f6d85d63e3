package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

type modelCard struct {
	ID          string         `json:"id"`
	Object      string         `json:"object"`
	Created     int64          `json:"created"`
	OwnedBy     string         `json:"owned_by"`
	Root        string         `json:"root"`
	Parent      *string        `json:"parent"`
	MaxModelLen int            `json:"max_model_len"`
	Meta        map[string]any `json:"meta"`
}

func (m *Model) card(name string) modelCard {
	root := m.Root
	if root == "" {
		root = m.Name
	}
	return modelCard{
		ID: name, Object: "model", Created: m.Created.Unix(), OwnedBy: "infer",
		Root: root, MaxModelLen: m.Context, Meta: m.Meta,
	}
}

// GET /v1/models
func (s *Server) listModels(c *gin.Context) {
	m, err := s.loaded(c.Request.Context())
	if err != nil {
		s.fail(c, asAPIError(err, "", 0))
		return
	}
	list := modelList{Object: "list"}
	for _, name := range m.names() {
		list.Data = append(list.Data, m.card(name))
	}
	s.writeJSON(c, http.StatusOK, list)
}

// GET /v1/models/{id}
func (s *Server) getModel(c *gin.Context) {
	m, err := s.loaded(c.Request.Context())
	if err != nil {
		s.fail(c, asAPIError(err, "", 0))
		return
	}
	id := strings.TrimPrefix(c.Param("id"), "/")
	if id == "" || !m.named(id) {
		s.fail(c, errModelNotFound(id, m.names()))
		return
	}
	s.writeJSON(c, http.StatusOK, m.card(id))
}

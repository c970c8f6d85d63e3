package api

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
)

// openAPI describes the served routes, in OpenAPI 3.1. Tests hold it to what
// the routes take and give.
//
//go:embed openapi.json
var openAPI []byte

// GET /openapi.json
func (s *Server) describe(c *gin.Context) {
	c.Data(http.StatusOK, "application/json; charset=utf-8", openAPI)
}

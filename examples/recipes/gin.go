package recipes

import (
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Gin makes a gin middleware of a net/http one, such as what gate.At returns:
//
//	r.POST("/checkout", recipes.Gin(gate.At(priority.Critical)), checkout)
//
// What the handlers answer passes through the gate's ResponseWriter, so that the
// gate knows how they did.
func Gin(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		admitted := false
		inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admitted = true
			writer := c.Writer
			defer func() { c.Writer = writer }()
			c.Request, c.Writer = r, ginWriter{writer, w}
			c.Next()
			c.Writer.WriteHeaderNow() // gin puts a bare status off until everything is over
		})
		middleware(inner).ServeHTTP(c.Writer, c.Request)
		if !admitted {
			c.Abort()
		}
	}
}

// ginWriter is gin's writer, with what is written passing through another.
type ginWriter struct {
	gin.ResponseWriter
	through http.ResponseWriter
}

func (w ginWriter) Write(b []byte) (int, error)       { return w.through.Write(b) }
func (w ginWriter) WriteString(s string) (int, error) { return io.WriteString(w.through, s) }
func (w ginWriter) WriteHeader(status int)            { w.through.WriteHeader(status) }
func (w ginWriter) Unwrap() http.ResponseWriter       { return w.through }
func (w ginWriter) Flush()                            { _ = http.NewResponseController(w.through).Flush() }

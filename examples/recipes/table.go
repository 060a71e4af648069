package recipes

import (
	"net/http"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// Table is the way that fits every router: rank by pattern, at the edge.
func Table(opts admission.Options, router http.Handler) (http.Handler, error) {
	// table: begin
	opts.Routes = map[string]admission.Rule{
		"POST /checkout": admission.AtLevel(priority.Critical),
		"GET /export":    admission.AtLevel(priority.Batch, admission.Cost(5)),
		"GET /healthz":   admission.AtLevel(priority.Normal, admission.Exempt()),
	}
	gate, err := admission.New(opts)
	if err != nil {
		return nil, err
	}
	return gate.Handler(router), nil // a *gin.Engine, an *echo.Echo, any http.Handler
	// table: end
}

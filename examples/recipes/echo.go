package recipes

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Echo makes an echo middleware of a net/http one, such as what gate.At returns:
//
//	e.POST("/checkout", checkout, recipes.Echo(gate.At(priority.Critical)))
//
// It differs from echo.WrapMiddleware in that a handler's error is answered within,
// so that the gate sees the status it becomes.
func Echo(middleware func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return echo.WrapMiddleware(middleware)(func(c echo.Context) error {
			if err := next(c); err != nil {
				c.Error(err)
			}
			return nil
		})
	}
}

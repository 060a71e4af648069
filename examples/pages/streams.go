package pages

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// streams declares what lives long.
func streams(gate *admission.Gate, events, socket, watch http.Handler) *http.ServeMux {
	// streams: begin
	mux := http.NewServeMux()
	mux.Handle("GET /events", gate.At(priority.Normal, admission.Stream(5_000))(events))
	mux.Handle("GET /ws", gate.At(priority.High, admission.Stream(10_000))(socket))
	mux.Handle("GET /watch", gate.At(priority.Batch, admission.Stream(500), admission.Timeout(time.Hour))(watch)) // cut after an hour
	// streams: end
	return mux
}

// patient bounds each read of a request's body, and each write of its answer,
// instead of the whole.
func patient(next http.Handler, stall time.Duration) http.Handler {
	// stall: begin
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(stall))  // move it on with each piece that is read
		_ = control.SetWriteDeadline(time.Now().Add(stall)) // and with each piece that is written
		next.ServeHTTP(w, r)
	})
	// stall: end
}

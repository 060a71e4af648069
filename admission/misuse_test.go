package admission

import (
	"testing"

	"github.com/headgate-go/headgate/priority"
)

func TestMisusePanicsAtSetUp(t *testing.T) {
	for want, f := range map[string]func(){
		"TimeoutHeader: the header's name is empty": func() { TimeoutHeader("", 0) },
		"Handler: the handler is nil":               func() { MustNew(Options{}).Handler(nil) },
		"At: the handler is nil":                    func() { MustNew(Options{}).At(priority.Normal)(nil) },
		"At: route option 0 is nil":                 func() { MustNew(Options{}).At(priority.Normal, nil) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); got != "admission: "+want {
					t.Errorf("panic %q; want %q", got, "admission: "+want)
				}
			}()
			f()
		}()
	}
}

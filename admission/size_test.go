package admission

import (
	"testing"
	"unsafe"
)

// All that the gate keeps of an admitted request is one object, which the collector pays
// for by its class of sizes: one byte over 512 costs 64.
func TestAnAdmittedRequestFitsItsClassOfSizes(t *testing.T) {
	if n := unsafe.Sizeof(request{}); n > 512 {
		t.Errorf("a request takes %d bytes", n)
	}
}

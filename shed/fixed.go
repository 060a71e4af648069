package shed

import (
	"fmt"
	"time"
)

// Fixed is a limit that never moves, for capacity that somebody really knows: a
// pool of N connections, a quota of N calls. Below 1 is an error from New.
type Fixed int

// New builds the law.
func (f Fixed) New() (Law, error) {
	if f < 1 {
		return nil, fmt.Errorf("shed: Fixed = %d: must be at least 1", int(f))
	}
	return fixed(f), nil
}

type fixed int

func (f fixed) Limit() int                        { return int(f) }
func (f fixed) Bounds() (least, most int)         { return int(f), int(f) }
func (f fixed) Note(time.Time, Load) Step         { return Step{} }
func (f fixed) Done(time.Time, Load, Sample) Step { return Step{} }

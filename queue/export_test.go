package queue

// WideWaits reports whether it is a wide waiter's turn and too few slots are free.
func (c *Core) WideWaits() bool { return c.gap.before() != nil }

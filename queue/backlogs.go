package queue

// backlogs knows, of the tenants of one class, how many have at least j waiters,
// for every j: a Fenwick tree over j. The sum up to k is Σ min(backlog, k), since
// a tenant is counted once for each j up to its backlog. All in O(log longest).
type backlogs struct {
	tree []int // tree[0] unused; the length less one is a power of two
}

// add counts one tenant more (or less, d = -1) that has at least j waiters.
func (b *backlogs) add(j, d int) {
	for j >= len(b.tree) {
		b.grow()
	}
	for ; j < len(b.tree); j += j & -j {
		b.tree[j] += d
	}
}

// sum returns Σ min(backlog, k) over all tenants.
func (b *backlogs) sum(k int) int {
	n := 0
	for k = min(k, len(b.tree)-1); k > 0; k -= k & -k {
		n += b.tree[k]
	}
	return n
}

// grow doubles the tree. Its last node covers everything, so the new last node
// starts with the same sum and the nodes between are empty.
func (b *backlogs) grow() {
	if len(b.tree) == 0 {
		b.tree = make([]int, 64+1)
		return
	}
	top := len(b.tree) - 1
	bigger := make([]int, 2*top+1)
	copy(bigger, b.tree)
	bigger[2*top] = b.tree[top]
	b.tree = bigger
}

package account

// Why says what was wrong with the store's last answer. The list is closed, so
// that it may label a metric.
type Why uint8

// What can be wrong with a store.
const (
	WhyNothing  Why = iota // it answers
	WhyTimeout             // no answer in time
	WhyRefused             // no connection
	WhyLost                // the connection broke
	WhyReadOnly            // a replica, or a primary that lost its rank
	WhyLoading             // it is reading its data from disk
	WhyMemory              // it may not grow: maxmemory with noeviction
	WhyCluster             // no primary for the key's slot
	WhyAuth                // credentials or permissions
	WhyLate                // it ran the call long after it was sent
	WhyError               // any other error answer

	// WhyCount is the number of reasons, for arrays indexed by Why.
	WhyCount = int(WhyError) + 1
)

var whyNames = [WhyCount]string{
	"", "timeout", "refused", "lost", "readonly", "loading", "memory", "cluster", "auth", "late", "error",
}

// String returns the reason's name in metrics and logs; WhyNothing has none.
func (w Why) String() string {
	if int(w) >= WhyCount {
		return "unknown"
	}
	return whyNames[w]
}

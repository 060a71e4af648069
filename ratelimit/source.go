package ratelimit

// Source says what a decision was based on.
type Source uint8

// The sources. In memory all decisions are Local.
const (
	SourceLocal       Source = iota // a bucket in this process, the whole truth
	SourceOverflow                  // the strict bucket that newcomers share when the table is full
	SourceSlot                      // a slot leased from the shared ceiling
	SourceDirect                    // one call to the shared ceiling
	SourceDenialCache               // refused from the store's last hint, without a call
	SourceShare                     // this process' share while the store is away
	SourceOpen                      // let through because the store is away
	SourceClosed                    // refused because the store is away
)

// SourceCount is the number of sources, for arrays indexed by Source.
const SourceCount = int(SourceClosed) + 1

var sourceNames = [SourceCount]string{
	"local", "overflow", "slot", "direct", "denial-cache", "share", "open", "closed",
}

// String returns the source's name in metrics and logs.
func (s Source) String() string {
	if int(s) >= SourceCount {
		return "unknown"
	}
	return sourceNames[s]
}

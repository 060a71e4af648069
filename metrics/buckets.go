package metrics

import dto "github.com/prometheus/client_model/go"

// classicBuckets sums cells up to cumulative buckets, and to the number of all.
func (l *layout) classicBuckets(cells []uint64) (*uint64, []*dto.Bucket) {
	counts := make([]uint64, len(l.bounds)+1)
	for i, n := range cells {
		counts[l.classic[i]] += n
	}
	var all uint64
	var buckets []*dto.Bucket
	for i, bound := range l.bounds {
		all += counts[i]
		buckets = append(buckets, &dto.Bucket{CumulativeCount: new(all), UpperBound: new(bound)})
	}
	all += counts[len(l.bounds)]
	return &all, buckets
}

// Gaps of empty buckets up to this long are written out: a new span costs more.
const shortGap = 2

// nativeBuckets sums cells up to the buckets of a native histogram: spans of
// buckets, and for each bucket the difference to the one before.
func (l *layout) nativeBuckets(cells []uint64) (spans []*dto.BucketSpan, deltas []int64) {
	var before int64
	next := 0 // the bucket after the last one written
	write := func(count int64) {
		*spans[len(spans)-1].Length++
		deltas = append(deltas, count-before)
		before = count
		next++
	}
	for i := 1; i < len(cells); i++ {
		count := int64(cells[i])
		for i+1 < len(cells) && l.native[i+1] == l.native[i] {
			i++
			count += int64(cells[i])
		}
		if count == 0 {
			continue
		}
		gap := l.native[i] - next
		if len(spans) == 0 || gap > shortGap {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(gap)), Length: new(uint32)})
			next, gap = l.native[i], 0
		}
		for range gap {
			write(0)
		}
		write(count)
	}
	return spans, deltas
}

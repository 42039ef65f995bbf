package application

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Four buckets to each doubling, from 32 µs to about a minute: what is said of a time is less than a quarter off.
const (
	timeFloorLog = 5  // of microseconds; what is quicker is counted with the first
	timeDoubles  = 21 // what is slower is counted with the last
	timeBuckets  = 4 * timeDoubles
)

// TimeCounts are how many purchases were answered in which time, since the start.
type TimeCounts [timeBuckets]int64

// AnswerTimes are within what half, and 99 of a hundred, of some purchases were answered. Seconds.
type AnswerTimes struct {
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
}

// Since are the times of what was answered after before was read; nil when nothing was.
func (c TimeCounts) Since(before TimeCounts) *AnswerTimes {
	total := int64(0)
	for i := range c {
		c[i] -= before[i]
		total += c[i]
	}
	if total == 0 {
		return nil
	}
	return &AnswerTimes{P50: c.within(0.50 * float64(total)), P99: c.within(0.99 * float64(total))}
}

// within is the time within which so many were answered, as if each bucket were filled evenly.
func (c TimeCounts) within(rank float64) float64 {
	for i, n := range c {
		if n > 0 && rank <= float64(n) {
			low, high := bucketFrom(i), bucketFrom(i+1)
			return low + (high-low)*rank/float64(n)
		}
		rank -= float64(n)
	}
	return bucketFrom(timeBuckets)
}

// bucketFrom is where a bucket begins, in seconds.
func bucketFrom(i int) float64 {
	return time.Duration((4 + i%4) << (timeFloorLog + i/4 - 2) * int(time.Microsecond)).Seconds()
}

func bucketOf(took time.Duration) int {
	micros := uint64(max(took.Microseconds(), 1<<timeFloorLog))
	log := bits.Len64(micros) - 1
	return min(4*(log-timeFloorLog)+int(micros>>(log-2)&3), timeBuckets-1)
}

// timeCounts are of one lane.
type timeCounts [timeBuckets]atomic.Int64

func (c *timeCounts) note(took time.Duration) { c[bucketOf(took)].Add(1) }

func (c *timeCounts) all() (counts TimeCounts) {
	for i := range c {
		counts[i] = c[i].Load()
	}
	return counts
}

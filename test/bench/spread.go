package main

import "slices"

// spread is a value over all rounds.
type spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	All    []float64 `json:"all"`
}

func (s *spread) add(v float64) {
	s.All = append(s.All, v)
	s.Min, s.Max, s.Median = slices.Min(s.All), slices.Max(s.All), median(s.All)
}

// median is the middle, or the mean of the two in the middle; of nothing it is 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// over divides, and gives 0 where there is nothing to divide by.
func over(n, d float64) float64 {
	if d == 0 {
		return 0
	}
	return n / d
}

func ratio(n, d int64) float64 { return over(float64(n), float64(d)) }

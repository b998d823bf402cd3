package benchmarks

import "math"

// Calibration compares the confidence of plans with the share of right ones, which have
// exactly the tools that were called.
type Calibration struct {
	// ECE is the expected calibration error (Naeini et al., AAAI 2015): the mean distance
	// between confidence and share of right plans over the bins, weighted by plans.
	ECE  float64          `json:"ece"`
	Bins []CalibrationBin `json:"bins"`
}

// CalibrationBin holds the plans with a confidence in [From, To); the last bin includes 1.
type CalibrationBin struct {
	From       float64 `json:"from"`
	To         float64 `json:"to"`
	Plans      int     `json:"plans"`
	Confidence float64 `json:"confidence"` // mean
	Right      float64 `json:"right"`      // share
}

// calibrationBins is the number of bins, of equal width.
const calibrationBins = 10

func calibrate(judged []judgement) *Calibration {
	c := &Calibration{Bins: make([]CalibrationBin, calibrationBins)}
	for i := range c.Bins {
		c.Bins[i].From, c.Bins[i].To = float64(i)/calibrationBins, float64(i+1)/calibrationBins
	}
	for _, j := range judged {
		b := &c.Bins[min(calibrationBins-1, max(0, int(j.confidence*calibrationBins)))]
		b.Plans++
		b.Confidence += j.confidence
		if j.right {
			b.Right++
		}
	}
	for i := range c.Bins {
		b := &c.Bins[i]
		if b.Plans == 0 {
			continue
		}
		c.ECE += math.Abs(b.Confidence-b.Right) / float64(len(judged))
		b.Confidence /= float64(b.Plans)
		b.Right /= float64(b.Plans)
	}
	return c
}

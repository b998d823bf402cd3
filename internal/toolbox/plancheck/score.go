package plancheck

import "math"

// limits are the signs above which a plan gets a finding. Fewer than two right plans in a
// hundred exceed them on the catalogues of the fit, see benchmarks/plans.md.
var limits = Signs{Reversed: .88, Unordered: .3, Lacking: .5, Misfit: .25}

// The probabilities of the faults that the schemas do not show. Their weights are fitted, see
// benchmarks/plans.md.
func (s *Signs) missingStep() float64 { return sigmoid(4*s.Lacking + 3*s.Unused - 3) }
func (s *Signs) wrongTool() float64   { return sigmoid(3*s.Misfit + 6*s.Lacking - 3) }
func (s *Signs) wrongOrder() float64  { return sigmoid(4*s.Reversed + 10*s.Unordered - 3) }

// schemaTrust is the probability of a fault in a plan that contradicts the schemas.
const schemaTrust = .99

// score is the probability of a plan without faults, if the faults are independent.
func (s *Signs) score() float64 {
	return (1 - schemaTrust*s.Schema) * (1 - s.missingStep()) * (1 - s.wrongTool()) * (1 - s.wrongOrder())
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

package stage

import "encoding/json"

// replay returns the state of a task after each transition of its log; the last is s itself.
// The log does not contain outputs, so an earlier state has only those that no later
// transition replaced.
func replay(s *State, log []Entry) []*State {
	made := map[Stage]int64{} // the versions that made the outputs
	for _, e := range log {
		switch e.Action {
		case Completed, Reinvoked, Inserted, Skipped, GaveUp:
			made[e.Stage] = e.Version
		}
	}
	at := State{Task: s.Task}
	at.Plan, at.Current, at.Completed = s.TemplatePlan, s.TemplatePlan[0], []Stage{}
	at.Response, at.Error = nil, nil
	var all []*State
	for _, e := range log {
		if e.Version >= s.Machine.Version {
			break
		}
		at.move(e.Action, e.Stage)
		at.Status, at.UpdatedAt = e.Status, e.At
		at.Progress = at.progress()
		n := at
		n.Machine = Machine{Version: e.Version}
		n.Context, n.VectorHits = map[Stage]json.RawMessage{}, []string{}
		for stage, version := range made {
			if output, ok := s.Context[stage]; ok && version <= e.Version {
				n.Context[stage] = output
			}
		}
		if version, ok := made[EmbeddingLookup]; ok && version <= e.Version {
			n.VectorHits = s.VectorHits
		}
		all = append(all, &n)
	}
	return append(all, s)
}

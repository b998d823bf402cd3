package plancheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// arguments checks the arguments of each call that states some.
func (c *checker) arguments() error {
	for i := range c.plan.Calls {
		call, t := &c.plan.Calls[i], c.tools[i]
		if t == nil || call.Arguments == nil {
			continue
		}
		before := len(c.out.Findings)
		if !c.inputs(i, t) {
			continue
		}
		// Arguments that only another tool takes show a wrong tool.
		if other, err := c.taking(i); err != nil {
			return err
		} else if other != "" {
			names := slices.Sorted(maps.Keys(call.Arguments))
			c.out.Findings = c.out.Findings[:before]
			c.find(Finding{Kind: WrongTool, Call: call.ID, Confidence: 1,
				Evidence: fmt.Sprintf("%s does not take the arguments %s; %s does", t.ID, strings.Join(names, ", "), other),
				Repair:   "call " + other, repair: swap(call.ID, other), Candidates: []string{other}})
		}
	}
	return nil
}

// inputs checks the arguments of call i. It reports whether one has the name of no input in any case.
func (c *checker) inputs(i int, t *catalog.Tool) (foreign bool) {
	call := &c.plan.Calls[i]
	takes, check := top(t.Takes), t.Checker()
	renamed := map[string]bool{} // inputs that get a value by a repair
	for _, name := range slices.Sorted(maps.Keys(call.Arguments)) {
		at := slices.IndexFunc(takes, func(p catalog.Parameter) bool { return p.Name == name })
		if at < 0 {
			if len(takes) > 0 && closed(t.Input) {
				to := c.unknownInput(call, t, takes, name)
				renamed[to.Name] = true
				foreign = foreign || suggest.Grade(catalog.Parameter{Name: name}, to) < suggest.Exact
			}
			continue
		}
		c.value(call, &takes[at], call.Arguments[name], check)
	}
	for k := range takes {
		in := &takes[k]
		supplies := func(e Edge) bool { return e.To == call.ID && (e.Input == in.Name || e.Input == "") } // "" may supply any
		v, given := call.Arguments[in.Name]
		if (!given || stands(v, in) || v == nil && refusal(check, call.Arguments, in.Name) != nil) && !renamed[in.Name] && in.Required && !in.Settled && !slices.ContainsFunc(c.plan.Edges, supplies) {
			c.missingInput(i, in)
		}
	}
	return foreign
}

// placeholder matches a text that stands for a value.
var placeholder = regexp.MustCompile(`^(?:<[^<>]+>|\{\{?[^{}"]+\}?\}|YOUR_\w+)$`)

// stands reports whether a value only stands for that of an input and names it: "<user_id>".
func stands(v any, in *catalog.Parameter) bool {
	s, _ := v.(string)
	return placeholder.MatchString(s) && slices.ContainsFunc(toolsearch.Words(s), func(w string) bool { return slices.Contains(toolsearch.Words(in.Name), w) })
}

// unknownInput reports an argument that the tool does not have. It returns the input without a value
// whose name is the most similar; the repair uses it.
func (c *checker) unknownInput(call *Call, t *catalog.Tool, takes []catalog.Parameter, name string) (to catalog.Parameter) {
	f := Finding{Kind: WrongInput, Call: call.ID, Input: name, Confidence: 1, Evidence: fmt.Sprintf("%s has no input %q", t.ID, name)}
	grade := func(p catalog.Parameter) float64 { return suggest.Grade(catalog.Parameter{Name: name}, p) }
	takes = slices.DeleteFunc(slices.Clone(takes), func(p catalog.Parameter) bool { return call.Arguments[p.Name] != nil || grade(p) < suggest.Alias })
	slices.SortStableFunc(takes, func(a, b catalog.Parameter) int { return cmp.Compare(grade(b), grade(a)) })
	for _, p := range takes {
		f.Candidates = append(f.Candidates, p.Name)
	}
	f.Repair, f.repair = "remove it", func(p *Plan) { delete(p.Calls[p.Position(call.ID)].Arguments, name) }
	if len(takes) > 0 {
		to = takes[0]
		f.Repair, f.repair = "call it "+to.Name, func(p *Plan) {
			args := p.Calls[p.Position(call.ID)].Arguments
			args[to.Name] = args[name]
			delete(args, name)
		}
	}
	c.find(f)
	return to
}

// value checks an argument with its schema, or the output that it refers to.
func (c *checker) value(call *Call, in *catalog.Parameter, v any, check func([]byte) error) {
	if s, ok := v.(string); ok {
		if refs := references(s); len(refs) > 0 && !refs[0].part {
			c.output(call, in, refs[0])
			return
		}
	}
	bad := refusal(check, map[string]any{in.Name: v}, in.Name)
	if bad == nil || v == nil && in.Required || len(references(v)) > 0 || stands(v, in) {
		return
	}
	f := Finding{Kind: WrongType, Call: call.ID, Input: in.Name, Evidence: bad.Error(), Confidence: 1}
	repaired, _ := Parsed(textOf(map[string]any{in.Name: v})).(map[string]any) // a copy
	for range 2 {                                                              // a value of the right type may be no option
		if bad = refusal(check, repaired, in.Name); bad != nil {
			bad.Repair(repaired, coerce)
		}
	}
	if v == nil {
		f.Repair, f.repair = "remove it", func(p *Plan) { delete(p.Calls[p.Position(call.ID)].Arguments, in.Name) }
	} else if refusal(check, repaired, in.Name) == nil {
		text, _ := json.Marshal(repaired[in.Name]) // a JSON value
		f.Repair, f.repair = "use "+string(text), assign(call.ID, in.Name, repaired[in.Name])
	}
	c.find(f)
}

// refusal returns what the schema of a tool has against an input in arguments, nil if nothing.
func refusal(check func([]byte) error, arguments map[string]any, name string) *catalog.ArgumentError {
	bad, ok := errors.AsType[*catalog.ArgumentError](check([]byte(textOf(arguments))))
	if ok {
		bad.Problems = slices.DeleteFunc(bad.Problems, func(p string) bool { return !strings.HasPrefix(p, name+": ") && !strings.HasPrefix(p, name+"/") })
	}
	if !ok || len(bad.Problems) == 0 {
		return nil
	}
	return bad
}

// output checks the output that an argument refers to. A reference to no call is checked by
// order.
func (c *checker) output(call *Call, in *catalog.Parameter, r reference) {
	from := c.plan.Position(r.call)
	if from < 0 || c.tools[from] == nil || r.output == "" || r.output[0] == '[' || len(c.tools[from].Gives) == 0 {
		return
	}
	gives := c.tools[from].Gives
	path := indexPattern.ReplaceAllString(r.output, "[]")
	at := slices.IndexFunc(gives, func(p catalog.Parameter) bool { return p.Path == path || p.Name == path })
	unknown := func(p catalog.Parameter) bool { // an element, whose schema has no path, or JSON in a text
		return path == p.Path+"[]" || strings.HasPrefix(path, p.Path+".") && slices.Contains(p.Types, "string")
	}
	if slices.ContainsFunc(gives, unknown) {
		return
	}
	if at >= 0 && suggest.Grade(catalog.Parameter{Name: in.Name, Types: gives[at].Types}, *in) > 0 {
		return
	}
	f := Finding{Kind: TypeConflict, Call: call.ID, Input: in.Name, Confidence: 1,
		Evidence: fmt.Sprintf("%s has no output %q", c.tools[from].ID, r.output)}
	if at >= 0 {
		f.Evidence = fmt.Sprintf("output %s of %s is %s, but %s is %s", r.output, c.tools[from].ID, strings.Join(gives[at].Types, " or "), in.Name, strings.Join(in.Types, " or "))
	}
	best, grade := "", 0.0
	for _, g := range gives {
		if w := suggest.Grade(g, *in); w > grade {
			best, grade = g.Path, w
		}
	}
	if best != "" {
		to := "$" + r.call + "." + best
		f.Repair, f.Candidates, f.repair = "use "+to, []string{best}, assign(call.ID, in.Name, to)
	}
	c.find(f)
}

// missingInput reports a required input without a value. Candidates are the calls before it
// that return such an output, then the tools that do.
func (c *checker) missingInput(i int, in *catalog.Parameter) {
	call := &c.plan.Calls[i]
	f := Finding{Kind: MissingInput, Call: call.ID, Input: in.Name, Confidence: 1,
		Evidence: fmt.Sprintf("%s requires %s", c.tools[i].ID, in.Name)}
	if v, given := call.Arguments[in.Name]; given {
		text, _ := json.Marshal(v) // a JSON value
		f.Evidence += fmt.Sprintf(", and %s only stands for it", text)
	}
	best, grade := reference{}, suggest.Partial/2
	read := map[string]bool{} // calls to which an argument refers
	for _, k := range c.plan.Calls {
		for _, r := range references(map[string]any(k.Arguments)) {
			read[r.call] = true
		}
	}
	for j, t := range c.tools {
		if j == i || t == nil || c.reaches(i, j) {
			continue
		}
		id := c.plan.Calls[j].ID
		for _, out := range t.Gives {
			g := suggest.Grade(out, *in)
			if g < suggest.Partial && suggest.Grade(catalog.Parameter{Name: in.Name, Types: out.Types}, *in) == 0 {
				continue
			}
			if !read[id] {
				g += .5 // nothing else uses it
			}
			if g >= grade && (g > suggest.Partial/2 || c.reaches(j, i)) {
				best, grade = reference{call: id, output: out.Path}, g
			}
		}
	}
	if best.call != "" {
		to := "$" + best.call + "." + best.output
		f.Repair, f.Candidates, f.repair = "use "+to, []string{best.call}, assign(call.ID, in.Name, to)
	}
	// The tools that take what an earlier call returns come first.
	makers := append(slices.Clone(c.index.Producers(in.Name)), c.index.Givers(toolsearch.EntityOf(in, toolsearch.PurposeOf(c.tools[i])))...)
	for _, follows := range []bool{true, false} {
		for _, id := range makers {
			if len(f.Candidates) < maxCandidates && id != call.Tool && !slices.Contains(f.Candidates, id) && c.follows(id, i) == follows {
				f.Candidates = append(f.Candidates, id)
			}
		}
	}
	c.find(f)
}

// follows reports whether a call before call i returns an input of a tool.
func (c *checker) follows(id string, i int) bool {
	t, _ := c.index.Tool(id)
	for j, before := range c.tools {
		if before == nil || !c.reaches(j, i) {
			continue
		}
		for _, out := range before.Gives {
			if slices.ContainsFunc(t.Takes, func(in catalog.Parameter) bool { return suggest.Grade(out, in) >= suggest.Exact }) {
				return true
			}
		}
	}
	return false
}

// taking returns the tool that takes all arguments of call i, and is the most similar to
// its tool and the best for the intent; "" if none does.
func (c *checker) taking(i int) (string, error) {
	call, t := &c.plan.Calls[i], c.tools[i]
	if len(call.Arguments) == 0 {
		return "", nil
	}
	near, err := c.index.Rank(c.ctx, strings.Join(toolsearch.Words(t.BareName()), " ")+". "+t.Description, toolsearch.Terms{NoMemory: true, NoGraph: true, NoPageRank: true})
	if err != nil {
		return "", err
	}
	for _, k := range near.Candidates {
		other, ok := c.index.Tool(k.ID)
		if ok && k.ID != t.ID && takesAll(&other, call.Arguments) {
			return k.ID, nil
		}
	}
	return "", nil
}

// takesAll reports whether a tool takes arguments without a fault.
func takesAll(t *catalog.Tool, args map[string]any) bool {
	takes := top(t.Takes)
	found := 0
	for _, p := range takes {
		v, given := args[p.Name]
		if given && (len(references(v)) == 0 && !allows(p.Types, v)) || !given && p.Required && !p.Settled {
			return false
		}
		if given {
			found++
		}
	}
	return found == len(args)
}

// top returns the parameters that are not nested.
func top(params []catalog.Parameter) []catalog.Parameter {
	return slices.DeleteFunc(slices.Clone(params), func(p catalog.Parameter) bool { return p.Path != p.Name })
}

// closed reports whether a schema of an object does not say that it has further properties.
func closed(schema json.RawMessage) bool {
	var s struct {
		More    json.RawMessage `json:"additionalProperties"`
		Pattern json.RawMessage `json:"patternProperties"`
	}
	return json.Unmarshal(schema, &s) == nil && (s.More == nil || string(s.More) == "false") && s.Pattern == nil
}

// typeOf returns the JSON type of a value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		n, _ := v.Float64()
		return typeOf(n)
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// allows reports whether types allow a value. No types allow all.
func allows(types []string, v any) bool {
	is := typeOf(v)
	return len(types) == 0 || is == "null" || slices.Contains(types, is) || is == "integer" && slices.Contains(types, "number")
}

// coerce returns v as one of types, or v itself: "5" as 5, a value as an array of it.
func coerce(v any, types []string) any {
	var forms []any
	switch v := v.(type) {
	case string:
		forms = []any{Parsed(v), Parsed(strings.ToLower(v))} // such as True
	case []any:
		if len(v) == 1 {
			forms = v
		}
	case bool, float64, json.Number:
		forms = []any{textOf(v)}
	}
	for _, to := range append(slices.Clone(forms), []any{v}) {
		if to != nil && allows(types, to) {
			return to
		}
	}
	return v
}

package qdranttest

import (
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
)

// test reports whether a point passes a filter.
type test func(*point) bool

// matcher returns the test for a filter; every point passes a nil filter. It rejects
// filters that the engine rejects, conditions that cairn does not send, and, like a server
// in strict mode, conditions on fields without the required index.
func (c *collection) matcher(f *pb.Filter) (test, error) {
	if f == nil {
		return func(*point) bool { return true }, nil
	}
	if f.MinShould != nil || f.Should != nil {
		return nil, invalid("the fake does not support should")
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var tests []test
	for i, cond := range slices.Concat(f.Must, f.MustNot) {
		t, err := c.condition(cond)
		if err != nil {
			return nil, err
		}
		tests = append(tests, func(p *point) bool { return t(p) == (i < len(f.Must)) })
	}
	return func(p *point) bool { return !slices.ContainsFunc(tests, func(t test) bool { return !t(p) }) }, nil
}

func (c *collection) condition(cond *pb.Condition) (test, error) {
	switch k := cond.GetConditionOneOf().(type) {
	case *pb.Condition_HasId:
		ids, err := idTexts(k.HasId.GetHasId())
		return func(p *point) bool { return ids[p.id] }, err
	case *pb.Condition_HasVector:
		return func(p *point) bool {
			name := k.HasVector.HasVector
			return name == c.denseName && p.dense != nil || name == c.sparse && p.sparse != nil
		}, nil
	case *pb.Condition_Field:
		var wanted []any
		indexed := pb.FieldType_FieldTypeKeyword
		switch m := k.Field.GetMatch().GetMatchValue().(type) {
		case *pb.Match_Integer:
			indexed, wanted = pb.FieldType_FieldTypeInteger, []any{m.Integer}
		case *pb.Match_Keyword:
			wanted = []any{m.Keyword}
		case *pb.Match_Keywords:
			for _, word := range m.Keywords.GetStrings() {
				wanted = append(wanted, word)
			}
		default:
			return nil, invalid("the fake matches keywords and integers, not %v", k.Field)
		}
		if have, ok := c.indexes[k.Field.Key]; !ok || have != indexed {
			return nil, invalid("Bad request: Index required but not found for %q of one of the following types: [%s]. Help: Create an index for this key or use a different filter.", k.Field.Key, indexed)
		}
		return func(p *point) bool {
			values := []*pb.Value{p.payload[k.Field.Key]}
			if list := values[0].GetListValue(); list != nil {
				values = list.Values
			}
			return slices.ContainsFunc(values, func(v *pb.Value) bool { return slices.Contains(wanted, scalar(v)) })
		}, nil
	}
	return nil, invalid("the fake does not support condition %v", cond)
}

// scalar returns a string or an integer, nil for a value of another type.
func scalar(v *pb.Value) any {
	switch k := v.GetKind().(type) {
	case *pb.Value_StringValue:
		return k.StringValue
	case *pb.Value_IntegerValue:
		return k.IntegerValue
	}
	return nil
}

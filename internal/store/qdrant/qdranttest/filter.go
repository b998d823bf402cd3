package qdranttest

import (
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
)

// checkFilter refuses what the engine would and, unless they are allowed,
// conditions on fields without an index of the type they need.
func (c *collection) checkFilter(f *pb.Filter) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.check(f)
}

func (c *collection) check(f *pb.Filter) error {
	if f == nil {
		return nil
	}
	if f.MinShould != nil {
		return invalid("the fake knows no min_should")
	}
	for _, cond := range slices.Concat(f.Must, f.Should, f.MustNot) {
		switch k := cond.GetConditionOneOf().(type) {
		case *pb.Condition_Filter:
			if err := c.check(k.Filter); err != nil {
				return err
			}
		case *pb.Condition_HasId:
			if _, err := idTexts(k.HasId.GetHasId()); err != nil {
				return err
			}
		case *pb.Condition_HasVector:
		case *pb.Condition_Field:
			if k.Field.Key == "" {
				return invalid("Validation error in body: [key: empty]")
			}
			want := pb.FieldType_FieldTypeKeyword
			switch k.Field.GetMatch().GetMatchValue().(type) {
			case *pb.Match_Integer, *pb.Match_Integers:
				want = pb.FieldType_FieldTypeInteger
			case *pb.Match_Keyword, *pb.Match_Keywords:
			case nil:
				if k.Field.Range == nil {
					return invalid("the fake knows conditions by match and range, not %v", k.Field)
				}
				want = pb.FieldType_FieldTypeInteger
			default:
				return invalid("the fake matches keywords and integers, not %v", k.Field.Match)
			}
			if have, ok := c.indexes[k.Field.Key]; !c.server.options.UnindexedFilters && (!ok || have != want) {
				return invalid("Bad request: Index required but not found for %q of one of the following types: [%s]. Help: Create an index for this key or use a different filter.", k.Field.Key, want)
			}
		default:
			return invalid("the fake knows no condition %T", k)
		}
	}
	return nil
}

// matcher returns what a point must be to pass a filter that check has accepted;
// all pass without one. A filter is read once: it may name as many points as there
// are, and is asked about each.
func matcher(f *pb.Filter) func(*point) bool {
	if f == nil {
		return func(*point) bool { return true }
	}
	conditions := func(of []*pb.Condition) (tests []func(*point) bool) {
		for _, cond := range of {
			tests = append(tests, condition(cond))
		}
		return tests
	}
	must, should, mustNot := conditions(f.Must), conditions(f.Should), conditions(f.MustNot)
	return func(p *point) bool {
		holds := func(test func(*point) bool) bool { return test(p) }
		return !slices.ContainsFunc(must, func(test func(*point) bool) bool { return !test(p) }) &&
			!slices.ContainsFunc(mustNot, holds) && (len(should) == 0 || slices.ContainsFunc(should, holds))
	}
}

func condition(cond *pb.Condition) func(*point) bool {
	switch k := cond.GetConditionOneOf().(type) {
	case *pb.Condition_Filter:
		return matcher(k.Filter)
	case *pb.Condition_HasId:
		if ids, err := idTexts(k.HasId.GetHasId()); err == nil {
			return func(p *point) bool { return ids[p.id] }
		}
	case *pb.Condition_HasVector:
		return func(p *point) bool {
			_, dense := p.dense[k.HasVector.HasVector]
			_, sparse := p.sparse[k.HasVector.HasVector]
			return dense || sparse
		}
	case *pb.Condition_Field:
		return func(p *point) bool {
			values := []*pb.Value{p.payload[k.Field.Key]}
			if list := values[0].GetListValue(); list != nil {
				values = list.Values
			}
			return slices.ContainsFunc(values, func(v *pb.Value) bool { return fieldHolds(v, k.Field) })
		}
	}
	return func(*point) bool { return false }
}

// fieldHolds reports whether one value meets a condition. Values of another
// type never do, without an error, as in the engine.
func fieldHolds(v *pb.Value, f *pb.FieldCondition) bool {
	text, isText := v.GetKind().(*pb.Value_StringValue)
	number, isNumber := v.GetKind().(*pb.Value_IntegerValue)
	switch m := f.GetMatch().GetMatchValue().(type) {
	case *pb.Match_Keyword:
		return isText && text.StringValue == m.Keyword
	case *pb.Match_Keywords:
		return isText && slices.Contains(m.Keywords.GetStrings(), text.StringValue)
	case *pb.Match_Integer:
		return isNumber && number.IntegerValue == m.Integer
	case *pb.Match_Integers:
		return isNumber && slices.Contains(m.Integers.GetIntegers(), number.IntegerValue)
	}
	if !isNumber {
		return false
	}
	x, r := float64(number.IntegerValue), f.Range
	return (r.Gt == nil || x > *r.Gt) && (r.Gte == nil || x >= *r.Gte) && (r.Lt == nil || x < *r.Lt) && (r.Lte == nil || x <= *r.Lte)
}

package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// The parts of an OpenAPI document that describe a tool. Schemas, and values that can be
// references, are kept as text; openAPI.get follows references.
type (
	operation struct {
		ID          string `json:"operationId"`
		Summary     string
		Description string
		Deprecated  bool
		Parameters  []json.RawMessage
		RequestBody json.RawMessage
		Responses   map[string]json.RawMessage
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema                json.RawMessage
		Content               map[string]media
	}
	requestBody struct {
		Required bool
		Content  map[string]media
	}
	response struct{ Content map[string]media }
	media    struct{ Schema json.RawMessage }
)

// maxFollowed bounds the bytes of the objects and arrays that references pass, maxMembers
// the number of their members.
const (
	maxFollowed = 16 * maxOpenAPI
	maxMembers  = 500_000
)

// pointer returns the target of a reference. It caches the members of the objects that the
// reference passes, because most references pass the same ones.
func (o *openAPI) pointer(ref string) (json.RawMessage, error) {
	path, local := strings.CutPrefix(ref, "#")
	switch {
	case !local:
		return nil, fmt.Errorf("reference to %.200q leads out of the document", ref)
	case strings.Count(path, "/") > maxNesting:
		return nil, fmt.Errorf("reference to %.200q leads deeper than %d levels", ref, maxNesting)
	}
	value, way := json.RawMessage(o.text), ""
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		at, known := o.members[way]
		if !known {
			if o.followed += len(value); o.followed > maxFollowed {
				return nil, errors.New("following its references takes too long")
			}
			at = map[string]json.RawMessage{}
			for key, inner := range members(value) {
				if at[key] = inner; len(at)+o.kept > maxMembers {
					return nil, fmt.Errorf("references lead through more than %d members", maxMembers)
				}
			}
			o.members[way], o.kept = at, o.kept+len(at)
		}
		way += "/" + step
		if s, err := url.PathUnescape(step); err == nil {
			step = s
		}
		if value = present(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]); value == nil {
			return nil, fmt.Errorf("reference to %.200q, which the document does not hold", ref)
		}
	}
	return value, nil
}

// follow returns the target of v if v is a reference, and v otherwise.
func (o *openAPI) follow(v json.RawMessage) (json.RawMessage, error) {
	for range 32 { // references may form a cycle
		ref := refOf(v)
		if ref == "" {
			break
		}
		var err error
		if v, err = o.pointer(ref); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// refOf returns the text of the reference v, "" if v is none.
func refOf(v json.RawMessage) (ref string) {
	_ = json.Unmarshal(member(v, "$ref"), &ref) // an error leaves ""
	return ref
}

// get follows references from v and decodes the target into part.
func (o *openAPI) get(v json.RawMessage, part any) error {
	v, err := o.follow(v)
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal(v, part)
}

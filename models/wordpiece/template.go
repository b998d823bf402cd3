package wordpiece

import (
	"encoding/json"
	"fmt"
)

// postProcessor holds the special tokens before and after a single text.
type postProcessor struct{ first, last string }

// UnmarshalJSON reads both forms in which BERT models publish "[CLS] A [SEP]":
// TemplateProcessing and BertProcessing.
func (p *postProcessor) UnmarshalJSON(b []byte) error {
	var f struct {
		Type   string `json:"type"`
		Single []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
			Sequence *struct {
				ID string `json:"id"`
			} `json:"Sequence"`
		} `json:"single"`
		First []any `json:"cls"`
		Last  []any `json:"sep"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	switch f.Type {
	case "TemplateProcessing":
		s := f.Single
		if len(s) == 3 && s[0].Special != nil && s[1].Sequence != nil && s[2].Special != nil {
			p.first, p.last = s[0].Special.ID, s[2].Special.ID
			return nil
		}
		return fmt.Errorf("post_processor: the template of one text must be a special token, the text, a special token")
	case "BertProcessing":
		if len(f.First) == 2 && len(f.Last) == 2 {
			first, ok1 := f.First[0].(string)
			last, ok2 := f.Last[0].(string)
			if ok1 && ok2 {
				p.first, p.last = first, last
				return nil
			}
		}
		return fmt.Errorf("post_processor: cls and sep must each be a token and its id")
	}
	return fmt.Errorf("post_processor %q, want \"TemplateProcessing\" or \"BertProcessing\"", f.Type)
}

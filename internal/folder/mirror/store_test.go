package mirror

import (
	"strings"
	"testing"
)

func TestParseStore(t *testing.T) {
	env := map[string]string{"QDRANT_API_KEY": "k", "CAIRN_STORE_SHARDS": "3", "CAIRN_STORE_REPLICAS": "2", "CAIRN_STORE_WRITE_CONSISTENCY": "2", "CAIRN_STORE_EXACT": "true"}
	s, err := ParseStore("qdrants://h/c", func(name string) string { return env[name] })
	if err != nil || s.options.APIKey != "k" || s.options.Shards != 3 || s.options.Replicas != 2 || s.options.WriteConsistency != 2 || !s.options.Exact || !s.Target.TLS {
		t.Errorf("ParseStore: %+v, %v", s, err)
	}
	for name, value := range map[string]string{"CAIRN_STORE_SHARDS": "0", "CAIRN_STORE_REPLICAS": "x", "CAIRN_STORE_EXACT": "maybe"} {
		if _, err := ParseStore("qdrant://h/c", func(n string) string { return map[string]string{name: value}[n] }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v, want an error that names it", name, value, err)
		}
	}
}

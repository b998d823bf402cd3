package outline

import (
	"bytes"
	"regexp"
	"sync"
)

func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

var (
	hash         = pattern(`^#`)
	dashes       = pattern(`^--`)
	doubleSlash  = pattern(`^//`)
	closingBrace = []string{"}"}
	blockComment = [2]string{"/*", "*/"}
)

// The languages of readLined.
var (
	ruby = &language{read: readLined(lined{
		begin:  pattern(`^[ \t]*(?:(?:private|protected|public|module_function|private_class_method|memoize)[ \t]+)?(def|class|module)[ \t]+((?:::)?(?:@{0,2}[A-Za-z_]\w*(?:\.|::))*)([A-Za-z_]\w*[?!=]?|[^\w\s(;.]{1,3})`),
		end:    []string{"end"},
		remark: hash, block: [2]string{"=begin", "=end"}, stop: "__END__",
		short: pattern(`^[^=]*def[ \t]+[\w.?!]+(?:\(.*\))?[ \t]+=[ \t]`),
		here:  pattern(`(?:<<[~-]|(?:^|[\s(,=\[])<<)["'` + "`" + `]?([A-Z_][A-Z0-9_]*)`),
		types: []string{"class", "module"}})}
	lua = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(?:local[ \t]+)?(function)[ \t]+((?:\w+[.:])*)([A-Za-z_]\w*)`),
		end:   []string{"end"}, remark: dashes, block: [2]string{"--[[", "]]"}})}
	shell = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(function)[ \t]+()([A-Za-z_][\w:.+-]*)|^[ \t]*()()([A-Za-z_][\w:.+-]*)[ \t]*\([ \t]*\)`),
		end:   []string{"}", ")"}, remark: hash, here: pattern(`(?:^|[^<])<<-?[ \t]*["'\\]?([A-Za-z_]\w*)`)})}

	protobuf = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(message|enum|service|rpc|oneof|extend)[ \t]+()([A-Za-z_][\w.]*)`),
		end:   closingBrace, remark: doubleSlash, block: blockComment,
		short: pattern(`\{[ \t]*\}[ \t;]*$|^[^{]*;[ \t]*(?://.*)?$`),
		types: []string{"message", "enum", "service", "oneof", "extend"}})}
	terraform = &language{read: readLined(lined{
		begin: pattern(`^([a-z_]+)[ \t]+(?:"([^"]*)"[ \t]+)?"([^"]+)"[ \t]*\{|^()()(locals|terraform|[a-z_]+)[ \t]*\{`),
		end:   closingBrace, remark: pattern(`^(?:#|//)`), block: blockComment, here: pattern(`<<[~-]?([A-Z_][A-Z0-9_]*)`)})}
	css = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(@[\w-]+)?()[ \t]*([^{};@][^{};]*?)[ \t]*\{`),
		end:   closingBrace, remark: pattern(`^//|,[ \t]*$`), block: blockComment, short: pattern(`\}[ \t]*$`),
		types: []string{"@media", "@supports", "@layer", "@container"}})}
	rLang = &language{read: readLined(lined{
		begin: pattern("^[ \\t]*()()([A-Za-z.][\\w.]*|`[^`]+`)[ \\t]*(?:<<?-|=)[ \\t]*function\\b" + `|^(set[A-Z]\w*)\(()[ \t]*"([^"]+)"`),
		end:   closingBrace, remark: hash, short: pattern(`^[^{]*\bfunction[ \t]*\([^{]*\)[ \t]*[^{ \t][^{]*$`)})}
	zig = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(?:(?:pub|export|extern|inline|noinline)[ \t]+(?:"c"[ \t]+)?)*(?:(fn)()[ \t]+([A-Za-z_]\w*)|(const)()[ \t]+([A-Za-z_]\w*)[^=]*=[ \t]*(?:extern |packed )?(?:struct|enum|union|opaque|error)\b|(test)()[ \t]+("[^"]*"|\w+)[ \t]*\{)`),
		end:   closingBrace, remark: doubleSlash, short: pattern(`[;}][ \t]*(?://.*)?$`), types: []string{"const"}})}
	elixir = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(defmodule|defprotocol|defimpl|defp?|defmacrop?|defguardp?|defdelegate|test|describe)[ \t]+()([A-Za-z_][\w.]*[?!]?|"[^"]*")`),
		end:   []string{"end"}, remark: pattern(`^(?:#|@(?:spec|impl|doc) )`), block: [2]string{`@doc """`, `"""`},
		here: pattern(`("""|''')$`), short: pattern(`,[ \t]*do:|^[ \t]*def(?:guard|delegate)`),
		types: []string{"defmodule", "defprotocol", "defimpl", "describe"}})}
	haskell = &language{read: readLined(lined{
		begin:  pattern(`^(data|newtype|type|class|instance)[ \t]+()(?:[^=]*=>[ \t]*)?(?:family[ \t]+|instance[ \t]+)?([A-Z][\w.']*(?:[ \t]+[A-Z][\w.']*)?)|^[ \t]*()()([a-z_][\w']*|\([^\w\s()]+\))[ \t]*::`),
		remark: dashes, block: [2]string{"{-", "-}"}, types: []string{"class", "instance"}})}
	groovy = &language{read: readLined(lined{
		begin: pattern(`^[ \t]*(?:(?:public|private|protected|static|final|abstract)[ \t]+)*(class|interface|trait|enum|def|void|task)[ \t]+()([A-Za-z_]\w*)[^=]*\{[ \t]*$|^[ \t]*(stage)[ \t]*\(()[ \t]*["']([^"']+)["']\)[ \t]*\{`),
		end:   closingBrace, remark: doubleSlash, block: blockComment, types: []string{"class", "interface", "trait", "enum"}})}
	makefile = &language{read: readLined(lined{
		begin:  pattern(`^()()((?:\$[({]\w+[)}]|[\w%/])[^\s:=#]*)[^:=#]*::?(?:[^:=]|$)`),
		remark: hash})}
	dockerfile = &language{read: readLined(lined{
		begin:  pattern(`^(?i:(FROM)()[ \t]+(?:--\S+[ \t]+)?\S+[ \t]+AS[ \t]+(\S+)|(FROM)()[ \t]+(?:--\S+[ \t]+)?(\S+))`),
		remark: hash})}
	// vue reads the scripts of a component.
	vue = &language{read: readBraces, classify: byAssignment, once: true, lists: true, lexis: scripts(*javaScript.lexis), keywords: typeScript.keywords}
)

// scripts makes the lexer skip the text outside of <script>.
func scripts(l lexis) *lexis {
	l.special = func(x *lexer) (int, tokenKind, bool) {
		if x.i > 0 && !x.follows("</script") {
			return 0, 0, false
		}
		if n := bytes.Index(x.src[x.i:], []byte("<script")); n >= 0 {
			if end := bytes.IndexByte(x.src[x.i+n:], '>'); end >= 0 {
				return x.i + n + end + 1, newline, true
			}
		}
		return len(x.src), newline, true
	}
	return &l
}

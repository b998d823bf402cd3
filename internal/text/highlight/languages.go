package highlight

import "strings"

// lexis describes the lexical syntax of a language.
type lexis struct {
	line       []string // the markers of line comments
	open, shut string   // the markers of block comments
	quotes     string
	keywords   map[string]bool
	fold       bool // keywords are case-insensitive
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

const (
	flow = "break case continue default do else for if return switch while true false "
	oo   = "catch class enum extends finally implements import instanceof interface new null package private protected public static super this throw throws try void "
	cee  = flow + "auto char const double enum extern float goto inline int long nullptr register short signed sizeof static struct typedef union unsigned void volatile NULL "
)

func curly(quotes, keywords string) *lexis {
	return &lexis{line: []string{"//"}, open: "/*", shut: "*/", quotes: quotes, keywords: words(keywords)}
}

func hashed(keywords string) *lexis {
	return &lexis{line: []string{"#"}, quotes: `"'`, keywords: words(keywords)}
}

// languages holds the languages by their names after a fence.
var languages = func() map[string]*lexis {
	all := map[string]*lexis{}
	for names, l := range map[string]*lexis{
		"go golang":                       curly("\"'`", flow+"any chan const defer error fallthrough func go goto import int interface iota map nil package range select string struct type var bool byte"),
		"c h":                             curly(`"'`, cee),
		"c++ cpp cc hpp cxx":              curly(`"'`, cee+oo+"bool concept constexpr consteval decltype delete explicit friend namespace noexcept operator override requires template typename using virtual co_await co_return"),
		"java kotlin kt scala":            curly(`"'`, flow+oo+"abstract boolean byte char companion data def double final float fun int long object open override sealed short synchronized trait val var volatile when with String"),
		"c# cs csharp":                    curly(`"'`, flow+oo+"async await base bool byte decimal delegate event foreach get in int internal is lock namespace object out override readonly ref sealed set string struct using var virtual where yield"),
		"rust rs":                         {line: []string{"//"}, open: "/*", shut: "*/", quotes: `"`, keywords: words(flow + "as async await const crate dyn enum extern fn impl in let loop match mod move mut pub ref self Self static struct super trait type unsafe use where bool char f32 f64 i32 i64 str u8 u32 u64 usize String Vec Option Result Some None Ok Err")},
		"swift":                           curly(`"`, flow+oo+"as extension func guard in init inout let nil protocol self struct var where"),
		"php":                             {line: []string{"//", "#"}, open: "/*", shut: "*/", quotes: `"'`, keywords: words(flow + oo + "array as echo elseif foreach fn function isset list namespace require use var")},
		"python py":                       hashed("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self"),
		"ruby rb":                         hashed("alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield"),
		"bash sh shell zsh":               hashed("case do done elif else esac export fi for function if in local readonly return set shift source then unset until while cd echo exit sudo"),
		"yaml yml toml ini conf":          hashed("true false null yes no on off"),
		"dockerfile docker make makefile": hashed("FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG AS include ifeq ifdef endif else define endef"),
		"powershell ps1 perl r":           hashed("function if else elseif foreach for while return param my our sub use print in TRUE FALSE NULL"),
		"sql":                             {line: []string{"--"}, open: "/*", shut: "*/", quotes: `"'`, fold: true, keywords: words("add all alter and as asc begin between by case column commit constraint create default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references returning right select set table then union unique update using values view when where with")},
		"lua haskell hs":                  {line: []string{"--"}, quotes: `"`, keywords: words("and break case class data deriving do else elseif end false for function if import in instance let local module newtype nil not of or repeat return then true type until where while")},
		"html xml svg":                    {open: "<!--", shut: "-->", quotes: `"`},
		"css scss":                        {open: "/*", shut: "*/", quotes: `"'`},
		"json jsonc json5":                {line: []string{"//"}, quotes: `"`, keywords: words("true false null")},
		"graphql proto protobuf":          {line: []string{"#", "//"}, quotes: `"`, keywords: words("enum extend fragment import input interface message mutation oneof option optional package query repeated rpc scalar schema service syntax type union")},
		"javascript js jsx mjs typescript ts tsx": curly("\"'`", flow+oo+"as async await const debugger delete export from function in keyof let of readonly type typeof undefined var yield number string boolean"),
	} {
		for _, name := range strings.Fields(names) {
			all[name] = l
		}
	}
	return all
}()

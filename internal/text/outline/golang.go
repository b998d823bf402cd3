package outline

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"slices"
	"strings"
)

// readGo finds the declarations in the part of a Go file that parses. A group of
// constants, variables or types is one symbol with the name of its first element.
func readGo(o *outline) {
	fset := gotoken.NewFileSet()
	file, _ := parser.ParseFile(fset, "", o.src, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return // unreachable: for a source given as bytes the parser returns a partial file
	}
	offset := func(p gotoken.Pos) int {
		return min(max(fset.PositionFor(p, false).Offset, 0), len(o.src))
	}
	add := func(s Symbol, decl ast.Decl, doc *ast.CommentGroup, signatureEnd gotoken.Pos) {
		s.Decl, s.End, s.Parent = offset(decl.Pos()), offset(decl.End()), -1
		s.Start = s.Decl
		if s.Signature == "" {
			s.Signature = signature(o.src[s.Decl:max(s.Decl, offset(signatureEnd))])
		}
		if s.Signature == "" { // broken
			s.Signature = signature(o.src[s.Decl:LineEnd(o.src, s.Decl)])
		}
		if doc != nil {
			s.Start = offset(doc.Pos())
		}
		if s.Name != "" && s.Name != "_" {
			o.add(s)
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			s := Symbol{Name: decl.Name.Name, Kind: "func", Scope: receiver(decl.Recv)}
			if s.Scope != "" {
				s.Kind = "method"
			}
			add(s, decl, decl.Doc, decl.Type.End())
		case *ast.GenDecl:
			names, isType := declared(decl)
			if decl.Tok == gotoken.IMPORT || len(names) == 0 {
				continue
			}
			s := Symbol{Name: names[0], Kind: decl.Tok.String(), Names: names[1:]}
			s.Signature = s.Kind + " " + signature([]byte(strings.Join(names, ", ")))
			if isType && len(names) == 1 {
				s.Kind = "type"
			}
			add(s, decl, decl.Doc, decl.End())
		}
	}
}

func receiver(recv *ast.FieldList) string {
	if recv == nil || len(recv.List) == 0 {
		return ""
	}
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func declared(decl *ast.GenDecl) (names []string, isType bool) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names, isType = append(names, spec.Name.Name), true
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				names = append(names, n.Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" || n == "" }), isType
}

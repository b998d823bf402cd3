package code_test

import (
	"testing"

	"cairn/internal/code"
)

func TestDeclares(t *testing.T) {
	for _, c := range []struct {
		line string // that has the name "size"
		want bool
	}{
		{"  private final List<Long> size;", true}, {"\tsize int", true}, {"\tsize []*a.B `json:\"size\"`", true}, {"size of a file", false}, {"\tsize: u32,", true}, {"    pub(crate) size: u32,", true},
		{"  size = 1,", true}, {"  size,", true}, {"size = None", true}, {"        self.size = size", true}, {"  this.size = size;", true},
		{"#define size 3", true}, {"define('size', 3);", true}, {"defineGetter(req, 'size', function () {", true}, {"    protected $size = 3;", true},
		{"const size = 3", true}, {"  size(a, b) {", true}, {"  int size() const;", true}, {"char *size;", true}, {"export type size = 3", true},
		{"  size: 3,", true}, {"enum size {", true},
		{"  return size;", false}, {"  if (size > 3) {", false}, {"  x.size = 3;", false}, {"  x = size;", false}, {"  x.size();", false},
		{"  size(a, b);", false}, {"// size: of a file", false}, {" * size: of a file", false}, {"import size from 'x'", false},
		{"  else size = 3", false}, {"  resize = 3", false}, {"  sizes = 3", false}, {"  size == 3", false}, {"std::size<int>", false},
		{"f(int size) {", false}, {"class A extends size {", false}, {"-- size = 3", false}, {"new size()", false}, {"    : size(0),", false}, {"  *size = 3;", false},
	} {
		if got := code.Declares([]byte("a\n"+c.line+"\nb\n"), "size"); got > 0 != c.want {
			t.Errorf("Declares(%q) = %v", c.line, got)
		}
	}
}

func TestDeclaresMoreOrLess(t *testing.T) {
	for _, c := range []struct {
		line string // that has the name "Size"
		want code.Declaration
	}{
		{"  double Size;", code.DoesDeclare}, {"  Size = 0;", code.MayDeclare}, {"  pub Size: bool,", code.DoesDeclare}, {"    Size: !(a || b),", code.MayDeclare},
		{"  Size: Subject<T>;", code.DoesDeclare}, {"    Size: bool = True", code.DoesDeclare}, {"        self.Size = size", code.MayDeclare}, {"\tSize int", code.DoesDeclare},
		{"let Size = 1;", code.DoesDeclare}, {"    let mut Size: usize = 1;", code.MayDeclare}, {"  A, Size", code.MayDeclare}, {"  A = 1, Size = 2,", code.MayDeclare}, {"  Size(String),", code.MayDeclare}, {"  private sizes: Size<T>[];", 0},
		{"  Added the ``Size`` value.", 0}, {"  Size the ``b`` value.", 0},
	} {
		if got := code.Declares([]byte(c.line+"\n"), "Size"); got != c.want {
			t.Errorf("Declares(%q) = %v, want %v", c.line, got, c.want)
		}
	}
}

package outline_test

import (
	"testing"

	"cairn/internal/text/outline"
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
		if got := outline.Declares([]byte("a\n"+c.line+"\nb\n"), "size"); got > 0 != c.want {
			t.Errorf("Declares(%q) = %v", c.line, got)
		}
	}
}

func TestDeclaresMoreOrLess(t *testing.T) {
	for _, c := range []struct {
		line string // that has the name "Size"
		want outline.Declaration
	}{
		{"  double Size;", outline.DoesDeclare}, {"  Size = 0;", outline.MayDeclare}, {"  pub Size: bool,", outline.DoesDeclare}, {"    Size: !(a || b),", outline.MayDeclare},
		{"  Size: Subject<T>;", outline.DoesDeclare}, {"    Size: bool = True", outline.DoesDeclare}, {"        self.Size = size", outline.MayDeclare}, {"\tSize int", outline.DoesDeclare},
		{"let Size = 1;", outline.DoesDeclare}, {"    let mut Size: usize = 1;", outline.MayDeclare}, {"  A, Size", outline.MayDeclare}, {"  A = 1, Size = 2,", outline.MayDeclare}, {"  Size(String),", outline.MayDeclare}, {"  private sizes: Size<T>[];", 0},
		{"  Added the ``Size`` value.", 0}, {"  Size the ``b`` value.", 0},
	} {
		if got := outline.Declares([]byte(c.line+"\n"), "Size"); got != c.want {
			t.Errorf("Declares(%q) = %v, want %v", c.line, got, c.want)
		}
	}
}

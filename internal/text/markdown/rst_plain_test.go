package markdown

import (
	"strings"
	"testing"

	"cairn/internal/base/testutil"
)

func TestPlainRST(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"titles", "=====\nGuide\n=====\n\nSet up\n------\ntext\n", "Guide\nSet up\ntext"},
		{"roles", "Use :func:`functools.wraps`, :meth:`~flask.Flask.route` and :doc:`the guide <guide>` at 12:30.", "Use functools.wraps, flask.Flask.route and the guide at 12:30."},
		{"default role", "The `key` of a `long name`, it`s 5` and `a` `.", "The key of a long name, it`s 5` and a `."},
		{"links", "See `the Go\nsite <https://go.dev>`_, `here`__ and `there`_.", "See the Go\nsite, here and there."},
		{"inline", "**bold** and *thin* and ``a *b* | c`` and |release|, 2 * 3 * 4, f(*args, **kw), a_b_", "bold and thin and a *b* | c and release, 2 * 3 * 4, f(*args, **kw), a_b_"},
		{"escapes", `a\ s \*b\* C:\path`, "as *b* C:\\path"},
		{"directives", ".. note::\n   Take *care*.\n\n.. versionadded:: 3.2\n\n.. image:: x.png\n   :alt: A tree\n   :width: 3\n\nafter", "Take care.\n3.2\nx.png\nafter"},
		{"objects", ".. py:function:: json.dumps(obj, *, indent=None)\n\n   Serialise *obj*.\n\n   :param obj: what to write\n", "json.dumps(obj, *, indent=None)\nSerialise obj.\nparam obj: what to write"},
		{"code", ".. code-block:: bash\n   :linenos:\n\n   if [ ! -f *a* ] | tee ``b``\n\n   - x\n\n*after*", "bash\n   if [ ! -f *a* ] | tee ``b``\n   - x\nafter"},
		{"literal blocks", "So::\n\n    a = *b*\n    -----\n\nThen ::\n\n    | c\n\n::\n\n  d\n\n- *e*", "So:\n    a = *b*\n    -----\nThen\n    | c\n  d\ne"},
		{"labels and comments", ".. _start:\n\n.. _go: https://go.dev\n\n.. a comment\n   of two lines\n\n..\n   hidden\n\ntext .. here", "text .. here"},
		{"footnotes and substitutions", ".. [1] A *note*.\n.. |v| replace:: 3.2", "A note.\n3.2"},
		{"lists", "* one\n- two\n#. three\n4. four\n| line", "one\ntwo\nthree\n4. four\nline"},
		{"tables", "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n\n+---+---+\n| a | b |\n+===+===+\n", "A      B\n1      2\na | b |"},
		{"python shell", ">>> f(*a, **b)\n3", ">>> f(*a, **b)\n3"},
		{"broken", "`open ``x *y |z :func:`", "`open ``x *y |z :func:`"},
		{"empty", "\n\n", ""},
	} {
		if got := Plain("a.rst", "", []byte(c.in)); got != c.want {
			t.Errorf("%s: %q\n got %q\nwant %q", c.name, c.in, got, c.want)
		}
	}
}

func TestPlainRSTIsLinear(t *testing.T) {
	const size = 1 << 20
	for _, s := range []string{"*a ", "`a ", "``a ", "|a ", ":a:`", "\\", ".. a\n", "::\n", "a::\n b\n", ":a:\n", "**", "` <"} {
		testutil.Linear(t, s, size/len(s), func(n int) func() {
			text := []byte(strings.Repeat(s, n))
			return func() { Plain("a.rst", "", text) }
		})
	}
}

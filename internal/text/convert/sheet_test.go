package convert

import (
	"fmt"
	"strings"
	"testing"
)

// TestRows: each row of a table is in a section of 20 rows below the first row, within the
// bounds of rows and bytes.
func TestRows(t *testing.T) {
	lines := func(n int, cell string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("row %d,%s", i+1, cell))
		}
		return all
	}
	text := func(rows []string) string {
		out, err := toMarkdown("a.csv", []byte("name,value\n"+strings.Join(rows, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	got := text(lines(5000, "v"))
	if want := "\n## Rows 5001 to 5001\n\n| name | value |\n| --- | --- |\n| row 5000 | v |\n"; !strings.HasSuffix(got, want) || !strings.Contains(got, "5001 rows, 2 columns.\n") {
		t.Errorf("a table of 5,001 rows ends with %q, want %q", got[max(0, len(got)-200):], want)
	}
	if want := "| row 19 | v |\n\n## Rows 21 to 40\n\n| name | value |\n| --- | --- |\n| row 20 | v |\n"; !strings.Contains(got, want) {
		t.Errorf("%.900q, want %q in it", got, want)
	}
	if got := text(lines(20_000, "v")); !strings.Contains(got, "20001 rows, 2 columns. The first 10000 rows:\n") || strings.Contains(got, "row 10000 ") {
		t.Errorf("%.200q of a table of 20,001 rows, want the first 10,000", got)
	}
	wide := text(lines(9000, strings.Repeat("x", 190)+","+strings.Repeat("y", 190)))
	if len(wide) > maxSheets+20_000 || len(wide) < maxSheets/2 || strings.Contains(wide, "row 9000 ") {
		t.Errorf("a table of 3.4 MiB has %d bytes, want about %d", len(wide), maxSheets)
	}
}

// TestRowsOfSheets: all sheets of a file share the bound, and each keeps its first rows.
func TestRowsOfSheets(t *testing.T) {
	row := "<row>" + strings.Repeat(`<c t="s"><v>0</v></c>`, 50) + "</row>"
	parts := map[string]string{"xl/workbook.xml": "", "xl/_rels/workbook.xml.rels": "", "xl/sharedStrings.xml": "<sst><si><t>" + strings.Repeat("x", 200) + "</t></si></sst>"}
	for i := range 3 {
		parts["xl/workbook.xml"] += fmt.Sprintf(`<sheet name="s%d" r:id="r%d"/>`, i, i)
		parts["xl/_rels/workbook.xml.rels"] += fmt.Sprintf(`<Relationship Id="r%d" Target="worksheets/s%d.xml"/>`, i, i)
		parts[fmt.Sprintf("xl/worksheets/s%d.xml", i)] = "<sheetData>" + strings.Repeat(row, 3000) + "</sheetData>"
	}
	for _, part := range []string{"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} {
		parts[part] = "<a>" + parts[part] + "</a>"
	}
	out, err := toMarkdown("a.xlsx", zipped(parts))
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(out), "\n| xxx"); len(out) > maxSheets+3*pieceRows*maxColumns*(maxCell+3)+10_000 || rows < 3*pieceRows {
		t.Errorf("%d rows in %d bytes, want at least %d rows in about %d bytes", rows, len(out), 3*pieceRows, maxSheets)
	}
}

// Package benchmarks measures the quality of cairn's answers on public retrieval sets, and
// their speed. It is the library behind the bench commands. The repository has no evaluation
// data; callers pass its folder.
package benchmarks

//go:generate go test -run TestFigures|TestHandbookRanking -update .

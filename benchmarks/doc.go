// Package benchmarks measures cairn: how good its answers are on public
// retrieval sets, and how fast. It is the library behind the bench commands.
// Evaluation data is no part of the repository; callers name its folder.
package benchmarks

//go:generate go test -run TestFigures|TestHandbookRanking -update .

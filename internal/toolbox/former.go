package toolbox

import (
	"context"
	"errors"
	"log/slog"

	"cairn/internal/base/home"
)

// FormerFiles are the files of an earlier version that Former reads.
var FormerFiles = []string{catalogFile, usageFile}

// Former returns the tools, edges and intents in copies of FormerFiles in dir, and a
// description of each damaged file. It changes the copies.
func Former(ctx context.Context, dir string) (list []Exported, damaged []string, err error) {
	s := newService(Options{HalfLife: -1, Logger: slog.New(slog.DiscardHandler)}, home.Place{Records: dir})
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.open(ctx); err != nil {
		return nil, nil, err
	}
	for _, r := range s.recovered {
		damaged = append(damaged, r.String())
	}
	_, err = s.export(ctx, struct{}{}, func(x Exported) { list = append(list, x) })
	return list, damaged, err
}

package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"cairn/internal/stage"
)

func outboxField(e stage.Entry) string { return e.TaskID + "|" + strconv.FormatInt(e.Version, 10) }

// record brings a transition to the archive. When it cannot, the outbox still
// has it; the transition counts either way.
func (s *Store) record(ctx context.Context, r stage.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	if err := s.archive.Record(ctx, r); err != nil {
		s.log.Warn("archiving a transition, which is tried again", "task", r.State.ID, "error", err)
		return
	}
	if err := s.client.HDel(ctx, keyOutbox, outboxField(r.Entry)).Err(); err != nil {
		s.log.Warn("clearing the outbox, which is tried again", "task", r.State.ID, "error", s.fail(err))
	}
}

// recordLimit is how long a transition waits for the archive; the outbox has it.
const recordLimit = 3 * time.Second

// flushed is how many records go to the archive at once.
const flushed = 200

// Flush brings what is in the outbox to the archive.
func (s *Store) Flush(ctx context.Context) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.client.HScan(ctx, keyOutbox, cursor, "", flushed).Result()
		if err != nil {
			return s.fail(err)
		}
		var fields []string
		var records []stage.Record
		for i := 0; i+1 < len(pairs); i += 2 {
			var r stage.Record
			if err := json.Unmarshal([]byte(pairs[i+1]), &r); err != nil {
				return fmt.Errorf("reading the outbox: %w", err)
			}
			fields, records = append(fields, pairs[i]), append(records, r)
		}
		if len(records) > 0 {
			if err := s.archive.Record(ctx, records...); err != nil {
				return err
			}
			if err := s.client.HDel(ctx, keyOutbox, fields...).Err(); err != nil {
				return s.fail(err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (s *Store) keepFlushing(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := s.ensure(ctx)
		if err == nil {
			err = s.Flush(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("bringing transitions to the archive", "error", err)
		}
	}
}

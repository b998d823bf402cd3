package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
)

func outboxField(e stage.Entry) string { return e.TaskID + "|" + strconv.FormatInt(e.Version, 10) }

// record sends a transition to the archive. If that fails, the record stays in the outbox.
// The transition is valid in either case.
func (s *Store) record(ctx context.Context, r stage.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	if err := s.archive.Record(ctx, r); err != nil {
		s.log.Warn("archiving a transition, trying again later", "task", r.State.ID, "error", err)
		return
	}
	if _, err := s.do(ctx, "HDEL", keyOutbox, outboxField(r.Entry)); err != nil {
		s.log.Warn("clearing the outbox, trying again later", "task", r.State.ID, "error", s.fail(err))
	}
}

// recordLimit is the maximum time that a transition waits for the archive.
const recordLimit = 3 * time.Second

// flushed is the approximate number of records per call of the archive.
const flushed = 200

// Flush sends the records in the outbox to the archive.
func (s *Store) Flush(ctx context.Context) error {
	for cursor := "0"; ; {
		var pairs []string
		reply, err := redis.Values(s.do(ctx, "HSCAN", keyOutbox, cursor, "COUNT", flushed))
		if err == nil {
			_, err = redis.Scan(reply, &cursor, &pairs)
		}
		if err != nil {
			return s.fail(err)
		}
		fields := []any{keyOutbox}
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
			if _, err := s.do(ctx, "HDEL", fields...); err != nil {
				return s.fail(err)
			}
		}
		if cursor == "0" {
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
			s.log.Warn("sending transitions to the archive", "error", err)
		}
	}
}

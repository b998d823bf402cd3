package git

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Commit is a commit. Its subject is whatever its author wrote.
type Commit struct {
	Hash    Hash
	Tree    Hash
	Parents []Hash // at most maxParents
	Time    time.Time
	Subject string // the first line, at most maxSubject bytes
}

const (
	maxParents = 64
	maxSubject = 300
)

// Commit reads a commit.
func (r *Repository) Commit(h Hash) (*Commit, error) {
	text, err := r.object(h, commitObject)
	if err != nil {
		return nil, err
	}
	header, message, _ := bytes.Cut(text, []byte("\n\n"))
	c := &Commit{Hash: h}
	ok := false
	for line := range strings.Lines(string(header)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch name {
		case "tree":
			c.Tree, ok = ParseHash(value)
		case "parent":
			if p, ok := ParseHash(value); ok && len(c.Parents) < maxParents {
				c.Parents = append(c.Parents, p)
			}
		case "committer":
			fields := strings.Fields(value)
			if n := len(fields); n >= 2 {
				seconds, _ := strconv.ParseInt(fields[n-2], 10, 40)
				c.Time = time.Unix(max(0, seconds), 0).UTC()
			}
		}
	}
	if !ok {
		return nil, errors.New("commit " + h.String() + " has no tree")
	}
	subject, _, _ := bytes.Cut(bytes.TrimSpace(message[:min(len(message), maxSubject)]), []byte("\n"))
	c.Subject = strings.TrimSpace(strings.ToValidUTF8(string(subject), ""))
	return c, nil
}

// queue is a heap of commits, the newest first.
type queue []*Commit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].Time.Equal(q[j].Time) {
		return q[i].Time.After(q[j].Time)
	}
	return bytes.Compare(q[i].Hash[:], q[j].Hash[:]) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)   { *q = append(*q, c.(*Commit)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// Walk calls visit with the commits that can be reached from a commit of from, the newest
// first, until visit returns false. It leaves out what can be reached only through a commit
// for which known returns true. A shallow clone's history ends where a parent is missing.
func (r *Repository) Walk(ctx context.Context, from []Hash, known func(Hash) bool, visit func(*Commit) (bool, error)) error {
	seen := map[Hash]bool{}
	var pending queue
	add := func(hashes []Hash) error {
		for _, h := range hashes {
			if seen[h] || known(h) {
				continue
			}
			seen[h] = true
			switch c, err := r.Commit(h); {
			case err == nil:
				heap.Push(&pending, c)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		return nil
	}
	if err := add(from); err != nil {
		return err
	}
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := heap.Pop(&pending).(*Commit)
		if more, err := visit(c); err != nil || !more {
			return err
		}
		if err := add(c.Parents); err != nil {
			return err
		}
	}
	return nil
}

// Package rest implements the HTTP API of question tasks. The server that mounts it must
// authenticate clients.
package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cairn/internal/stage"
)

// maxBody is the maximum size of a request in bytes.
const maxBody = 64 << 10

// Handler serves these paths:
//
//	POST /tasks/create         {user_id, query, template?, plan?} -> {task_id, status:"created", template, user_id}
//	GET  /tasks/{id}/status    the task
//	GET  /tasks/{id}/progress  the task after each transition until its end, as server-sent events
//	POST /tasks/{id}/answer    {answer, citations?, not_found?, needs_web_search?, confidence?, worker?, run?, event_id?} -> the task
//	POST /tasks/{id}/abort     {reason?} -> the task
//
// Failures are {success:false, error, code} with a matching status.
func Handler(e *stage.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tasks/create", func(w http.ResponseWriter, r *http.Request) { create(w, r, e) })
	mux.HandleFunc("GET /tasks/{id}/status", func(w http.ResponseWriter, r *http.Request) {
		s, err := e.Task(r.Context(), r.PathValue("id"))
		answer(w, http.StatusOK, s, err)
	})
	mux.HandleFunc("GET /tasks/{id}/progress", func(w http.ResponseWriter, r *http.Request) { progress(w, r, e) })
	mux.HandleFunc("POST /tasks/{id}/answer", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			stage.Draft
			NeedsWebSearch bool     `json:"needs_web_search"`
			Confidence     *float64 `json:"confidence"`
			Worker         string   `json:"worker"`
			Run            int      `json:"run"`
			EventID        string   `json:"event_id"`
		}
		if err := read(w, r, &in, false); err != nil {
			fail(w, err)
			return
		}
		a := stage.Answered{Draft: in.Draft, Confidence: in.Confidence, NeedsWebSearch: in.NeedsWebSearch, By: in.Worker}
		s, err := e.Answer(r.Context(), r.PathValue("id"), &a, stage.Event{ID: in.EventID, Run: in.Run, Worker: in.Worker})
		answer(w, http.StatusOK, s, err)
	})
	mux.HandleFunc("POST /tasks/{id}/abort", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Reason string `json:"reason"`
		}
		if err := read(w, r, &in, true); err != nil {
			fail(w, err)
			return
		}
		s, err := e.Apply(r.Context(), r.PathValue("id"), stage.Event{Kind: stage.Abort, Reason: in.Reason})
		answer(w, http.StatusOK, s, err)
	})
	return mux
}

func create(w http.ResponseWriter, r *http.Request, e *stage.Engine) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/json" {
		write(w, http.StatusUnsupportedMediaType, failure(&stage.Error{Code: stage.CodeParameter, Message: "the body has to be application/json"}))
		return
	}
	var in struct {
		UserID   string        `json:"user_id"`
		Query    string        `json:"query"`
		Template string        `json:"template"`
		Plan     []stage.Stage `json:"plan"`
	}
	if err := read(w, r, &in, false); err != nil {
		fail(w, err)
		return
	}
	s, err := e.Create(r.Context(), stage.Request{UserID: in.UserID, Query: in.Query, Template: in.Template, Plan: in.Plan})
	if err != nil {
		fail(w, err)
		return
	}
	write(w, http.StatusCreated, map[string]string{"task_id": s.ID, "status": "created", "template": s.Template, "user_id": s.UserID})
}

// progress streams the states of a task until the task ends or the client disconnects.
func progress(w http.ResponseWriter, r *http.Request, e *stage.Engine) {
	s, err := e.Task(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, err = e.Watch(r.Context(), s.ID, func(s *stage.State) {
		text, _ := stage.Encode(s.Task) // never fails: the state was decoded from JSON
		// Write errors need no check, because the context ends when the client disconnects.
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", s.Machine.Version, s.Status, text)
		_ = stream.Flush()
	}, nil)
	if err != nil && r.Context().Err() == nil {
		text, _ := stage.Encode(failure(err))
		fmt.Fprintf(w, "event: error\ndata: %s\n\n", text)
	}
}

// read decodes the body of a request. It leaves in unchanged if the body is empty
// and optional.
func read(w http.ResponseWriter, r *http.Request, in any, optional bool) error {
	body := http.MaxBytesReader(w, r.Body, maxBody)
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	err := dec.Decode(in)
	if optional && errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("more than one JSON object")
		}
	}
	if err != nil {
		return &stage.Error{Code: stage.CodeParameter, Message: "the body is not the JSON object wanted", Err: err}
	}
	return nil
}

func answer(w http.ResponseWriter, status int, s *stage.State, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	write(w, status, s.Task)
}

func failure(err error) map[string]any {
	code := "INTERNAL_ERROR"
	if e, ok := errors.AsType[*stage.Error](err); ok {
		code = string(e.Code)
	}
	return map[string]any{"success": false, "error": err.Error(), "code": code}
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[*stage.Error](err); ok {
		switch e.Code {
		case stage.CodeNotFound:
			status = http.StatusNotFound
		case stage.CodeUnavailable:
			status = http.StatusServiceUnavailable
		case stage.CodeParameter, stage.CodeTemplate, stage.CodePlan:
			status = http.StatusBadRequest
		default:
			status = http.StatusConflict
		}
	}
	write(w, status, failure(err))
}

func write(w http.ResponseWriter, status int, v any) {
	text, err := stage.Encode(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // unreachable: all values can be encoded
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

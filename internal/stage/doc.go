// Package stage runs long-running question tasks through their stages. The pure function
// Step computes transitions. An Engine stores them and runs the stages.
//
// Tasks are stored by embedded (a file) or postgres, copied to Redis by redis, and queued by
// this package or by rabbitmq. openai asks a language model, websearch a search engine.
// Packages rest and tools implement protocols.
//
//	         claim             last stage complete
//	waiting ───────▶ in_progress ───────▶ complete
//	   ▲               │  │  │
//	   └───────────────┘  │  └──▶ failed    second failure in a row of one stage,
//	   next stage is the  │                 moderation not met after two re-invocations,
//	   calling agent's    ▼                 or the task's time is up
//	                   aborted              from waiting, too
//
// Each transition increments the version of the task, and each entry into a stage its run
// number. A result names its run, so the machine rejects a result that is late, repeated or
// from a second worker. A stage may run more than once, but only one result counts.
//
// The room imports the retriever, which answers the passages of a question, and the rooms
// below it. Package support estimates whether the cited text states an answer. Start with
// Step in machine.go.
package stage

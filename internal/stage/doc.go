// Package stage runs long-running question tasks through their stages. A pure
// function (Step) computes transitions; an Engine stores them and runs the stages.
// Databases and queues are in the packages below it, protocols in rest and tools.
//
//	         claim             last stage complete
//	waiting ───────▶ in_progress ───────▶ complete
//	   ▲               │  │  │
//	   └───────────────┘  │  └──▶ failed    second failure in a row of one stage,
//	   next stage is the  │                 moderation not met after two re-invocations,
//	   calling agent's    ▼                 or the task's time is up
//	                   aborted              from waiting, too
//
// Every transition carries the version of the task it makes, every entry into a
// stage a run number. A result names its run, so the machine refuses a result that
// is late, repeated or from a second worker: a stage may run more than once, but
// only one result counts.
package stage

// Package stage is the stage machine of long-running question tasks: a pure
// transition function over (state, event), and an engine that applies events to
// a store and runs the stages. It knows no database, queue or protocol: those
// are in the packages below it, and in cmd and tools.
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
// stage a run number. A result names the run it belongs to, so a result that
// comes late, twice or from a second worker is refused and changes nothing:
// stages may be delivered more than once, and count once.
package stage

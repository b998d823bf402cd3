-- Every task with its newest state. state is the JSON of the whole; the columns
-- beside it repeat what is searched for.
CREATE TABLE IF NOT EXISTS task_histories (
    task_id       text        PRIMARY KEY,
    user_id       text        NOT NULL,
    template      text        NOT NULL,
    status        text        NOT NULL CHECK (status IN ('waiting', 'in_progress', 'complete', 'failed', 'aborted')),
    current_stage text        NOT NULL,
    run           integer     NOT NULL,
    version       bigint      NOT NULL,
    started_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    deadline      timestamptz, -- null once it has ended
    resend_at     timestamptz, -- null without a job
    state         text        NOT NULL
);
CREATE INDEX IF NOT EXISTS task_histories_user ON task_histories (user_id, started_at DESC);
CREATE INDEX IF NOT EXISTS task_histories_started ON task_histories (started_at DESC);
CREATE INDEX IF NOT EXISTS task_histories_deadline ON task_histories (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS task_histories_resend ON task_histories (resend_at) WHERE resend_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS task_histories_ended ON task_histories (updated_at) WHERE deadline IS NULL;

-- Every transition. It outlives nothing: a task's rows go with the task.
CREATE TABLE IF NOT EXISTS task_stage_logs (
    task_id  text        NOT NULL REFERENCES task_histories ON DELETE CASCADE,
    version  bigint      NOT NULL,
    ts       timestamptz NOT NULL,
    stage    text        NOT NULL,
    action   text        NOT NULL,
    status   text        NOT NULL,
    detail   text        NOT NULL,
    event_id text        NOT NULL,
    worker   text        NOT NULL,
    run      integer     NOT NULL,
    PRIMARY KEY (task_id, version)
);

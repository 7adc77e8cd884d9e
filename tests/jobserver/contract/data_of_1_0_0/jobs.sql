BEGIN TRANSACTION;
CREATE TABLE answers (
    key TEXT NOT NULL, project_id TEXT NOT NULL, fingerprint TEXT NOT NULL, answer TEXT NOT NULL,
    created_at TEXT NOT NULL, job_id TEXT, PRIMARY KEY (project_id, key)
) STRICT;
INSERT INTO "answers" VALUES('k-1','docs','45cc0760eb0d50f03bf1371f14a27bc36b3ed1118a78fad78162fe0f5463a8a6','{"id":"0000000000000001","status":"active","source":{"repository":"docs","ref":"main"},"model":"claude","pr_link":null,"created_at":"2026-01-01T00:00:00.000Z","archived_at":null}','2026-01-01T00:00:00.000000Z','0000000000000001');
CREATE TABLE attachments (
    instruction INTEGER NOT NULL REFERENCES instructions (number) ON DELETE CASCADE, position INTEGER NOT NULL,
    upload_id TEXT NOT NULL REFERENCES uploads (id), name TEXT NOT NULL, mimetype TEXT,
    PRIMARY KEY (instruction, position)
) STRICT;
INSERT INTO "attachments" VALUES(1,0,'3b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80','a.png',NULL);
CREATE TABLE "instructions" (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    project_id TEXT NOT NULL, prompt TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'stopped')),
    created_at TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, commit_id TEXT, stop_reason TEXT,
    answer TEXT NOT NULL DEFAULT '', requester_name TEXT, requester_id TEXT, requester_url TEXT
, answers INTEGER) STRICT;
INSERT INTO "instructions" VALUES(1,'0000000000000001','docs','one','done','2026-01-01T00:00:00.000000Z',1,NULL,NULL,'Said one','Ada','U1','https://slack.example/p1',NULL);
INSERT INTO "instructions" VALUES(2,'0000000000000002','docs','two','failed','2026-01-01T00:01:00.000000Z',1,NULL,NULL,'(git is away)','Ada','U1','https://slack.example/p1',NULL);
INSERT INTO "instructions" VALUES(3,'0000000000000003','docs','three','running','2026-01-01T00:02:00.000000Z',1,NULL,NULL,'','Ada','U1','https://slack.example/p1',NULL);
INSERT INTO "instructions" VALUES(4,'0000000000000003','docs','the red one','queued','2026-01-01T00:03:00.000000Z',0,NULL,NULL,'',NULL,NULL,NULL,3);
INSERT INTO "instructions" VALUES(5,'0000000000000004','docs','four','queued','2026-01-01T00:03:00.000000Z',0,NULL,NULL,'',NULL,NULL,NULL,NULL);
INSERT INTO "instructions" VALUES(6,'0000000000000005','docs','five','done','2026-01-01T00:03:00.000000Z',1,NULL,NULL,'','Ada','U1','https://slack.example/p1',NULL);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, status TEXT NOT NULL, repository TEXT NOT NULL, ref TEXT NOT NULL,
    model TEXT NOT NULL, branch TEXT NOT NULL, pr_link TEXT, failure TEXT,
    created_at TEXT NOT NULL, finished_at TEXT, archived_at TEXT
, branch_number INTEGER NOT NULL DEFAULT 1, pr_branch TEXT, session TEXT, details TEXT NOT NULL DEFAULT '{}', partial_commit TEXT, partial_files INTEGER NOT NULL DEFAULT 0, tokens_sent INTEGER NOT NULL DEFAULT 0, tokens_answered INTEGER NOT NULL DEFAULT 0, money REAL NOT NULL DEFAULT 0, currency TEXT NOT NULL DEFAULT '', tokens_agreed INTEGER NOT NULL DEFAULT 0, asked_at TEXT, open_question TEXT) STRICT;
INSERT INTO "jobs" VALUES('0000000000000001','docs','completed','docs','main','claude','pagehand/0000000000000001','http://x/pulls/1',NULL,'2026-01-01T00:00:00.000000Z','2026-01-01T00:00:00.000000Z',NULL,1,'pagehand/0000000000000001','s-1','{"summary":"Said one"}',NULL,0,0,0,0.0,'',0,NULL,NULL);
INSERT INTO "jobs" VALUES('0000000000000002','docs','failed','docs','main','claude','pagehand/0000000000000002',NULL,'git is away','2026-01-01T00:01:00.000000Z','2026-01-01T00:02:00.000000Z',NULL,1,NULL,NULL,'{}','beef',3,0,0,0.0,'',0,NULL,NULL);
INSERT INTO "jobs" VALUES('0000000000000003','docs','active','docs','main','claude','pagehand/0000000000000003',NULL,NULL,'2026-01-01T00:02:00.000000Z',NULL,NULL,1,NULL,NULL,'{}',NULL,0,0,0,0.0,'',0,NULL,NULL);
INSERT INTO "jobs" VALUES('0000000000000004','docs','active','docs','main','claude','pagehand/0000000000000004',NULL,NULL,'2026-01-01T00:03:00.000000Z',NULL,NULL,1,NULL,NULL,'{}',NULL,0,0,0,0.0,'',0,NULL,NULL);
INSERT INTO "jobs" VALUES('0000000000000005','docs','completed','docs','main','claude','pagehand/0000000000000005',NULL,NULL,'2026-01-01T00:03:00.000000Z','2026-01-01T00:04:00.000000Z',NULL,1,NULL,NULL,'{}',NULL,0,0,0,0.0,'',0,NULL,NULL);
CREATE TABLE old_branches (
    name TEXT PRIMARY KEY, left_at TEXT NOT NULL
) STRICT;
INSERT INTO "old_branches" VALUES('pagehand/gone','2026-01-01T00:00:00.000000Z');
CREATE TABLE proposals (
    job_id TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, branch TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, checks TEXT NOT NULL, extras TEXT NOT NULL,
    requester_name TEXT, requester_id TEXT, requester_url TEXT,
    version INTEGER NOT NULL DEFAULT 1, failures INTEGER NOT NULL DEFAULT 0, due_at TEXT NOT NULL
) STRICT;
INSERT INTO "proposals" VALUES('0000000000000005','pagehand/0000000000000005','Five','Does five','[]','labels,review','Ada','U1','https://slack.example/p1',1,0,'2026-01-01T00:04:00.000000Z');
CREATE TABLE spending (
    day TEXT PRIMARY KEY, tokens INTEGER NOT NULL
) STRICT
;
INSERT INTO "spending" VALUES('2026-01-01',36);
CREATE TABLE uploads (
    id TEXT PRIMARY KEY, size INTEGER NOT NULL, mimetype TEXT NOT NULL, used_at TEXT NOT NULL
) STRICT;
INSERT INTO "uploads" VALUES('3b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80',4,'image/png','2026-01-01T00:00:00.000000Z');
CREATE INDEX jobs_to_archive ON jobs (finished_at) WHERE archived_at IS NULL;
CREATE INDEX jobs_to_delete ON jobs (archived_at) WHERE archived_at IS NOT NULL;
CREATE INDEX instructions_of_job ON instructions (job_id, number);
CREATE INDEX instructions_of_project ON instructions (project_id, created_at);
CREATE INDEX instructions_waiting ON instructions (state) WHERE state IN ('queued', 'running');
CREATE INDEX answers_of_job ON answers (job_id);
CREATE INDEX answers_by_age ON answers (created_at);
CREATE INDEX uploads_by_age ON uploads (used_at);
CREATE INDEX attachments_of_upload ON attachments (upload_id);
CREATE INDEX proposals_due ON proposals (due_at);
CREATE INDEX jobs_with_partial_work ON jobs (id) WHERE partial_commit IS NOT NULL;
CREATE INDEX instructions_that_answer ON instructions (answers) WHERE answers IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('instructions',6);
COMMIT;
PRAGMA user_version = 7;

BEGIN TRANSACTION;
CREATE TABLE pull_requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, branch TEXT NOT NULL, base TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    base_commit TEXT NOT NULL, head_commit TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT
, ended_by TEXT, requested_by TEXT, request_url TEXT) STRICT;
INSERT INTO "pull_requests" VALUES(1,'pagehand/a','main','A change','> Asked','merged','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','2026-01-01T00:00:00+00:00','2026-01-02T00:00:00+00:00','Ben','Ada','https://slack.example/p1');
INSERT INTO "pull_requests" VALUES(2,'pagehand/b','main','A change','> Asked','open','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','2026-01-01T00:00:00+00:00',NULL,NULL,'Ada','https://slack.example/p1');
CREATE UNIQUE INDEX one_open_a_branch ON pull_requests (branch) WHERE state = 'open';
CREATE INDEX pull_requests_of_state ON pull_requests (state, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('pull_requests',3);
COMMIT;
PRAGMA user_version = 2;

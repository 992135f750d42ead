-- How many of the handled labels of an operation were confirmed by which evidence; and which failures had been handed over
-- when they failed: of each failure, and counted in the ledger, by cause, and of what a retry took over.
ALTER TABLE cqs_ledger_delta ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger_delta ADD COLUMN transferred bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger_delta ADD COLUMN displayed bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger_delta ADD COLUMN failed_handed_over bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger ADD COLUMN written bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger ADD COLUMN transferred bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger ADD COLUMN displayed bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger ADD COLUMN failed_handed_over bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_dead ADD COLUMN handed_over boolean NOT NULL DEFAULT false;
ALTER TABLE cqs_dead_group ADD COLUMN handed_over bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_retry ADD COLUMN handed_over bigint NOT NULL DEFAULT 0;

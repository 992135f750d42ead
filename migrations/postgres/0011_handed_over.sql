-- Whether a row was handed over to what lies behind its service and waits for the confirmation; and how many such rows an
-- operation has in a queue: of the waiting, the leased and the cancelled ones.
ALTER TABLE cqs_waiting ADD COLUMN handed_over boolean NOT NULL DEFAULT false;
ALTER TABLE cqs_leased ADD COLUMN handed_over boolean NOT NULL DEFAULT false;
ALTER TABLE cqs_ledger_delta ADD COLUMN handed_over bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_ledger ADD COLUMN handed_over bigint NOT NULL DEFAULT 0;

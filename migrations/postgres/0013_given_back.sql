-- How much of what a retry had taken over is open again where it failed: what it had not come to when it was cancelled.
ALTER TABLE cqs_retry ADD COLUMN labels_given_back bigint NOT NULL DEFAULT 0;
ALTER TABLE cqs_retry ADD COLUMN parents_given_back bigint NOT NULL DEFAULT 0;

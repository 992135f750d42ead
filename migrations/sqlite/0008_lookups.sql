-- Indexes of look-ups: the audit log by time and by outcome; failures by the retry that took them over.
CREATE INDEX cqs_audit_time ON cqs_audit (tenant, at, id);
CREATE INDEX cqs_audit_outcome ON cqs_audit (tenant, outcome, id);
CREATE INDEX cqs_dead_retried ON cqs_dead (retried_by, queue, urn) WHERE retried_by IS NOT NULL;

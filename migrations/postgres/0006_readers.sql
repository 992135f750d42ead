-- Who follows the audit log, and how far each has come.
CREATE TABLE cqs_audit_reader (
    reader   text   PRIMARY KEY,
    position bigint NOT NULL CHECK (position >= 0)   -- of the last row it is done with
);
CREATE INDEX cqs_audit_order ON cqs_audit (id);

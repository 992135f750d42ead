-- Who follows the audit log, and how far each has come.
CREATE TABLE cqs_audit_reader (
    reader   TEXT    PRIMARY KEY,
    position INTEGER NOT NULL CHECK (position >= 0)   -- of the last row it is done with
) WITHOUT ROWID;

//! Why an operator command did not do what was asked, and what to do about it.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Exit, output::clean};

/// A failed command. One line says what is wrong, a second what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CliError {
    /// How the program ends.
    pub exit: Exit,
    /// The problem's stable code, e.g. `NOT_FOUND`; empty for what is found out here.
    pub code: String,
    /// The field, flag or key that is wrong; empty when no single one is.
    pub field: String,
    /// One sentence.
    pub message: String,
    /// What to do; empty when the message says it.
    pub advice: String,
}

/// The members of an RFC 9457 problem that are read; others are none of ours.
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    code: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    field: String,
}

impl CliError {
    /// A failure of this kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, code: String::new(), field: String::new(), message: message.into(), advice: String::new() }
    }

    /// A wrong flag, key or line.
    pub fn usage(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { field: field.into(), ..Self::new(Exit::Usage, message.to_string()) }
    }

    /// The same, with what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Out of an answer that is not a success. A body that is no problem (a proxy's page) is not repeated to the terminal.
    pub fn from_answer(status: u16, body: &[u8]) -> Self {
        let problem = serde_json::from_slice::<Problem>(body).ok().filter(|problem| !problem.code.is_empty());
        let exit = exit_of(status);
        let Some(problem) = problem else {
            return Self::new(exit, format!("the gateway answered {status} without saying why"))
                .advise("check that the url is the gateway's and not a proxy's or another server's");
        };
        let message = if problem.detail.is_empty() { problem.title } else { problem.detail };
        let advice = advice(&problem.code, status);
        Self { exit, code: clean(&problem.code), field: clean(&problem.field), message: clean(&message), advice }
    }

    /// Names the object that was asked for, where the gateway names no field: it says that something is not there, and the
    /// path says what.
    #[must_use]
    pub fn naming(mut self, path: &str) -> Self {
        if self.code == "NOT_FOUND" && self.field.is_empty() {
            let object = object_of(path);
            if !object.is_empty() {
                self.message = format!("{object}: {}", self.message);
            }
        }
        self
    }

    /// The same about a request that only reads: nothing was or was not done, and no tracking id is in play.
    #[must_use]
    pub fn of_a_read(mut self) -> Self {
        if matches!(self.code.as_str(), "DEADLINE_EXCEEDED" | "UNAVAILABLE") {
            "repeat the command once the service is back (`reshelf doctor` tells which is down)"
                .clone_into(&mut self.advice);
        }
        self
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({"error": {
            "exit": self.exit.code(),
            "code": self.code,
            "field": self.field,
            "message": self.message,
            "advice": self.advice,
        }})
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        if !self.code.is_empty() {
            write!(f, " ({})", self.code)?;
        }
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  what to do: {}", self.advice) }
    }
}

/// The object of a path below `/v1/tenants`, e.g. `label L1 of store berlin of tenant demo`; empty for other paths.
fn object_of(path: &str) -> String {
    let segments: Vec<&str> = path.strip_prefix("/v1/").unwrap_or_default().split('/').collect();
    if segments.first() != Some(&"tenants") {
        return String::new();
    }
    let name = |pair: &[&str]| match pair {
        [collection, id] => Some(format!("{} {}", collection.strip_suffix('s').unwrap_or(collection), clean(id))),
        // What hangs on an object, e.g. its failures, is no object of its own.
        _ => None,
    };
    segments.chunks(2).rev().filter_map(name).collect::<Vec<_>>().join(" of ")
}

/// How the program ends after an answer of that status.
fn exit_of(status: u16) -> Exit {
    match status {
        400 | 405 | 406 | 411 | 413 | 415 | 422 => Exit::Usage,
        401 | 403 | 404 => Exit::NotAllowed,
        409 | 412 => Exit::Conflict,
        408 | 429 | 502 | 503 | 504 | 507 => Exit::Unavailable,
        _ => Exit::Unexpected,
    }
}

/// What to do about a problem of that code. A code that this program does not know is told by its status alone.
fn advice(code: &str, status: u16) -> String {
    let text = match (code, status) {
        ("INVALID_ARGUMENT", _) => "correct it and repeat; nothing was done",
        ("UNAUTHENTICATED", _) => "get a new token; `reshelf doctor` says what is wrong with this one",
        ("PERMISSION_DENIED", _) => "ask for a token with that scope; `reshelf whoami` shows what this one has",
        ("NOT_FOUND", _) => "check the ids, and with `reshelf whoami` the tenants and stores of the token",
        ("ALREADY_EXISTS", _) => "take another tracking id, or repeat the request exactly as it was",
        ("FAILED_PRECONDITION", _) => "look at it with `reshelf operations show`; it lists what is allowed now",
        ("RESOURCE_EXHAUSTED", _) => "wait a moment and repeat the command",
        ("STORAGE_FULL", _) => "free space on the platform's disk, then repeat the command",
        ("UNAVAILABLE", _) => {
            "nothing was done: repeat the same command once the service is back (`reshelf doctor` tells which is down)"
        }
        ("DEADLINE_EXCEEDED", _) => {
            "it is unknown whether it was done: repeat with the same tracking id, which never does it twice"
        }
        ("INTERNAL", _) => "look into the log of the service; repeating with the same tracking id is safe",
        (_, 409 | 412) => "look at what is there with `reshelf operations show`, then decide",
        _ => "",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_as_field_and_what_to_do() {
        let body = br#"{"type":"/problems/ALREADY_EXISTS","title":"t","status":409,"code":"ALREADY_EXISTS",
            "detail":"the tracking id names another request","field":"model_id","retryable":false}"#;
        let error = CliError::from_answer(409, body);
        assert_eq!(error.exit, Exit::Conflict);
        let text = error.to_string();
        assert!(text.starts_with("model_id: the tracking id names another request (ALREADY_EXISTS)\n"), "{text}");
        assert!(text.contains("take another tracking id"), "{text}");
        assert_eq!(error.json()["error"]["field"], "model_id");
    }

    #[test]
    fn what_is_no_problem_is_not_repeated_and_control_characters_never_reach_a_terminal() {
        let error = CliError::from_answer(502, b"<html>\x1b[2Jproxy</html>");
        assert_eq!(error.exit, Exit::Unavailable);
        assert!(!error.to_string().contains("html"), "{error}");
        let error = CliError::from_answer(400, b"{\"code\":\"INVALID_ARGUMENT\",\"detail\":\"a\\u001b[2Jb\"}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let told = |path: &str, field: &str| {
            let body = json!({"code": "NOT_FOUND", "detail": "there is no such object", "field": field});
            let error = CliError::from_answer(404, body.to_string().as_bytes()).naming(path);
            error.to_string().lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            told("/v1/tenants/demo/operations/CHG-1/failures", ""),
            "operation CHG-1 of tenant demo: there is no such object (NOT_FOUND)"
        );
        assert_eq!(
            told("/v1/tenants/demo/stores/berlin/labels/L1", ""),
            "label L1 of store berlin of tenant demo: there is no such object (NOT_FOUND)"
        );
        assert_eq!(told("/v1/operations", ""), "there is no such object (NOT_FOUND)");
        assert_eq!(told("/v1/tenants/demo", "model_id"), "model_id: there is no such object (NOT_FOUND)");
    }

    #[test]
    fn a_read_leaves_nobody_in_doubt_about_what_was_done() {
        let body = br#"{"code":"DEADLINE_EXCEEDED","detail":"cqs gave no answer in time; repeat the request"}"#;
        let error = CliError::from_answer(504, body);
        assert!(error.advice.contains("unknown"), "{error}");
        assert!(!error.of_a_read().to_string().contains("unknown"));
    }

    #[test]
    fn every_code_of_the_table_has_advice() {
        for code in domain::ErrorCode::ALL {
            let known = !advice(code.as_str(), 400).is_empty();
            // A lease is no operator's, and a body of ours is never too large by itself.
            let never = ["STALE_LEASE", "PAYLOAD_TOO_LARGE"].contains(&code.as_str());
            assert!(known || never, "{code}");
        }
    }
}

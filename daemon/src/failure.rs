//! How a program that cannot go on says so: one line on standard error, whatever `RUST_BACKTRACE` says, and exit code 1.

use std::{
    error::Error,
    io::{self, Write as _},
    process::ExitCode,
};

/// The whole cause in one line.
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    let mut last = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        // Many errors repeat their source in their own text.
        if !last.contains(&text) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&text);
        }
        last = text;
        next = cause.source();
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The exit code of a daemon; why it could not go on is told under its name.
pub fn exit_code(program: &str, ended: Result<(), impl AsRef<dyn Error + 'static>>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error changes nothing about how it ended.
            let _ = writeln!(io::stderr().lock(), "{program}: {}", one_line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

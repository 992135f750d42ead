//! What a command prints on standard output: a table for people, JSON and JSONL for programs.
//!
//! JSON is the gateway's own answer and as stable as the REST API; tables may change at any time.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::Value;

use super::{CliError, Exit};

/// How answers look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
}

/// A column of a list.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its head.
    pub title: &'static str,
    /// Its cell out of one entry.
    pub cell: fn(&Value) -> String,
    /// Whether it holds numbers.
    pub number: bool,
}

/// A column of texts.
pub const fn column(title: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { title, cell, number: false }
}

/// A column of numbers.
pub const fn number(title: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { title, cell, number: true }
}

/// Standard output of one command.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// How it looks.
    pub format: Format,
    /// Only ids, and nothing about progress.
    pub quiet: bool,
}

impl Output {
    /// Whether nothing but ids is wanted: a table without any is not printed then.
    pub fn is_silent(self) -> bool {
        self.quiet && self.format == Format::Table
    }

    /// One answer; `table` is what people see.
    pub fn one(self, value: &Value, table: impl FnOnce() -> String) -> Result<(), CliError> {
        match self.format {
            Format::Table => self.text(&table()),
            Format::Json => self.text(&pretty(value)),
            Format::Jsonl => self.text(&value.to_string()),
        }
    }

    /// A list.
    pub fn many(self, values: &[Value], columns: &[Column], nothing: &str) -> Result<(), CliError> {
        match self.format {
            Format::Table if self.quiet => {
                let ids: Vec<String> =
                    values.iter().filter_map(|value| columns.first().map(|id| (id.cell)(value))).collect();
                self.lines(&ids)
            }
            Format::Table if values.is_empty() => {
                note(nothing);
                Ok(())
            }
            Format::Table => self.text(&table(values, columns)),
            Format::Json => self.text(&pretty(&Value::from(values))),
            Format::Jsonl => self.lines(&values.iter().map(Value::to_string).collect::<Vec<_>>()),
        }
    }

    fn lines(self, lines: &[String]) -> Result<(), CliError> {
        if lines.is_empty() { Ok(()) } else { self.text(&lines.join("\n")) }
    }

    /// A text with a line end. A reader that went away (`| head`) is no failure, but there is nobody to print for any more.
    pub fn text(self, text: &str) -> Result<(), CliError> {
        bytes(text.as_bytes()).and_then(|()| bytes(b"\n"))
    }

    /// Bytes as they are; refused on a terminal, which would show them as rubbish.
    pub fn raw(self, content: &[u8]) -> Result<(), CliError> {
        if io::stdout().is_terminal() {
            return Err(CliError::usage("--to", "standard output is a terminal; name a file"));
        }
        bytes(content)
    }
}

fn bytes(content: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(content).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::new(Exit::Unexpected, format!("cannot write to standard output: {error}"))),
    }
}

/// A line for people, on standard error. That nobody can read it is no failure.
pub fn note(text: &str) {
    // A closed standard error must not end a command that did its work.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn pretty(value: &Value) -> String {
    // A tree of texts and numbers always serialises.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A table without lines, which survives being copied into a ticket.
pub fn table(values: &[Value], columns: &[Column]) -> String {
    let rows = values.iter().map(|value| columns.iter().map(|column| (column.cell)(value)).collect()).collect();
    let heads: Vec<(&str, bool)> = columns.iter().map(|column| (column.title, column.number)).collect();
    grid(&heads, rows)
}

/// The same over texts; each head says whether its column holds numbers.
pub fn grid(heads: &[(&str, bool)], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(heads.iter().map(|(title, number)| aligned(Cell::new(title.to_uppercase()), *number)));
    for row in rows {
        let cells = row.into_iter().zip(heads).map(|(text, (_, number))| aligned(Cell::new(clean(&text)), *number));
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn aligned(cell: Cell, number: bool) -> Cell {
    if number { cell.set_alignment(CellAlignment::Right) } else { cell }
}

/// Names and values, one pair a line; pairs without a value are left out.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, value): &(&str, String)| format!("{:width$}  {}", clean(name), clean(value));
    pairs.iter().filter(|(_, value)| !value.is_empty()).map(line).collect::<Vec<_>>().join("\n")
}

/// A text as a terminal may be given it: what others wrote must not move the cursor or change colours.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

/// The text at a JSON pointer; numbers as they are, empty when there is none.
pub fn at(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The time at a JSON pointer, to the second.
pub fn time_at(value: &Value, pointer: &str) -> String {
    let text = at(value, pointer);
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{seconds}Z"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_aligned_and_clean() {
        let rows = [json!({"id": "a\u{1b}[2J", "labels": 5}), json!({"id": "bc", "labels": 1200})];
        let text = table(&rows, &[column("id", |row| at(row, "/id")), number("labels", |row| at(row, "/labels"))]);
        assert_eq!(text, "ID     LABELS\na\u{FFFD}[2J       5\nbc       1200");
    }

    #[test]
    fn pairs_leave_out_what_is_not_there() {
        assert_eq!(pairs(&[("state", "RUNNING".to_owned()), ("until", String::new())]), "state  RUNNING");
        assert_eq!(time_at(&json!({"at": "2026-06-01T22:00:00.123Z"}), "/at"), "2026-06-01T22:00:00Z");
    }
}

//! The operator token: read where it is needed, never printed, never part of a debug text.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::{CliError, Exit};

/// Longest token, in bytes: gateways refuse headers beyond 16 KiB.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Longest wait for a token command: it may ask a person for a second factor.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

/// Where a token comes from. Read anew when the gateway says that the one in hand is over.
#[derive(Debug, Clone)]
pub enum TokenSource {
    /// The variable `RESHELF_TOKEN`.
    Environment(SecretString),
    /// A file that holds the token and nothing else.
    File(PathBuf),
    /// A program that prints it.
    Command(Vec<String>),
}

/// What a token says of itself; nothing of it is verified here.
#[derive(Debug, Deserialize)]
pub struct TokenClaims {
    /// When it ends, in seconds since 1970.
    pub exp: Option<i64>,
}

impl TokenSource {
    /// Where it comes from, for people.
    pub fn origin(&self) -> String {
        match self {
            Self::Environment(_) => "the variable RESHELF_TOKEN".to_owned(),
            Self::File(path) => format!("the file {}", path.display()),
            // Arguments may hold secrets of their own.
            Self::Command(words) => format!("the command {}", words.first().map_or("", String::as_str)),
        }
    }

    /// The token.
    pub async fn read(&self) -> Result<SecretString, CliError> {
        let text = match self {
            Self::Environment(token) => token.expose_secret().to_owned(),
            Self::File(path) => fs::read_to_string(path).map_err(|error| {
                CliError::usage("token", format!("cannot read {}: {error}", path.display()))
                    .advise("write a token there (`reshelf token` makes one for a local platform), or name another file with --token-file")
            })?,
            Self::Command(words) => printed(words).await?,
        };
        let token = text.trim();
        let fits = (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            return Err(CliError::usage("token", format!("{} holds no token", self.origin()))
                .advise("it must hold one operator token and nothing else"));
        }
        Ok(SecretString::from(token.to_owned()))
    }
}

async fn printed(words: &[String]) -> Result<String, CliError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(CliError::usage("token_command", "must name a program"));
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).stderr(Stdio::inherit()).kill_on_drop(true);
    let failed = |what: String| {
        CliError::new(Exit::NotAllowed, format!("token_command {program}: {what}"))
            .advise("run it by hand; it must print a token and end with 0")
    };
    let output = tokio::time::timeout(COMMAND_TIMEOUT, command.output())
        .await
        .map_err(|_| failed(format!("did not end within {} s", COMMAND_TIMEOUT.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("printed no text".to_owned()))
}

/// The header that carries it, marked so that no log shows it.
pub fn bearer(token: &SecretString) -> Result<HeaderValue, CliError> {
    let mut header = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
        .map_err(|_| CliError::usage("token", "holds characters that no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// What the token says of itself; none when it is no JWT.
pub fn claims(token: &SecretString) -> Option<TokenClaims> {
    let payload = token.expose_secret().split('.').nth(1)?;
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_comes_from_file_or_command_and_never_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "abc.def.ghi\n").unwrap();
        let source = TokenSource::File(path.clone());
        let token = source.read().await.unwrap();
        assert_eq!(token.expose_secret(), "abc.def.ghi");
        assert!(!format!("{token:?} {:?}", bearer(&token).unwrap()).contains("abc"));

        let words = |words: &[&str]| TokenSource::Command(words.iter().map(|word| (*word).to_owned()).collect());
        let printed = words(&["printf", "%s", "abc.def.ghi"]).read().await.unwrap();
        assert_eq!(printed.expose_secret(), "abc.def.ghi");
        assert!(words(&["false"]).read().await.unwrap_err().message.contains("false"));

        for bad in ["", "two words", "line\nline", "ä"] {
            fs::write(&path, bad).unwrap();
            let error = source.read().await.unwrap_err();
            assert!(bad.is_empty() || !error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn the_end_of_a_token_is_read_from_itself() {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(br#"{"exp":1780000000,"sub":"a"}"#);
        let token = SecretString::from(format!("e30.{payload}.x"));
        assert_eq!(claims(&token).unwrap().exp, Some(1_780_000_000));
        assert!(claims(&SecretString::from("opaque")).is_none());
    }
}

//! How an operator command ends, as a number for scripts. Stable: a number is never given another meaning.

use std::process::ExitCode;

/// How an operator command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Accepted or answered; of a wait: reached what was waited for, without a failure.
    Success = 0,
    /// A fault of the gateway or of this program, or an answer that makes no sense.
    Unexpected = 1,
    /// The command line, the configuration or the request is wrong.
    Usage = 2,
    /// The operation finished; some of its labels failed.
    Failures = 3,
    /// The operation failed as a whole.
    Failed = 4,
    /// The operation was cancelled, superseded, or expired.
    Cancelled = 5,
    /// It conflicts with what is there: the tracking id names another request, a plan is stale, the state does not allow it.
    Conflict = 6,
    /// Not allowed, not there, or waiting for somebody's approval.
    NotAllowed = 7,
    /// The operation is held, paused or stopped by the brake: a person is needed.
    Held = 8,
    /// The gateway or a service behind it does not answer, also after trying again.
    Unavailable = 9,
    /// Only with `--detailed-exitcode`: the dry run found something to do.
    WouldChange = 10,
    /// `--timeout` passed; the operation goes on.
    TimedOut = 124,
    /// Ctrl-C: this program stopped looking; the operation goes on.
    Detached = 130,
}

impl Exit {
    /// All, by number.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::Unexpected,
        Self::Usage,
        Self::Failures,
        Self::Failed,
        Self::Cancelled,
        Self::Conflict,
        Self::NotAllowed,
        Self::Held,
        Self::Unavailable,
        Self::WouldChange,
        Self::TimedOut,
        Self::Detached,
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one to end with when several things ended differently: what most needs a person's eye.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        const BY_WEIGHT: [Exit; 13] = [
            Exit::Success,
            Exit::WouldChange,
            Exit::TimedOut,
            Exit::Detached,
            Exit::Cancelled,
            Exit::Unavailable,
            Exit::Held,
            Exit::Failures,
            Exit::NotAllowed,
            Exit::Conflict,
            Exit::Usage,
            Exit::Failed,
            Exit::Unexpected,
        ];
        let weight = |exit: Self| BY_WEIGHT.iter().position(|known| *known == exit);
        if weight(other) > weight(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_each_has_a_weight() {
        for (at, exit) in Exit::ALL.iter().enumerate() {
            assert!(Exit::ALL.iter().skip(at + 1).all(|other| other.code() > exit.code()), "{exit:?}");
            assert_eq!(Exit::Success.worst(*exit), *exit);
            assert_eq!(exit.worst(Exit::Unexpected), Exit::Unexpected);
        }
    }
}

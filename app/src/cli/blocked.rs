//! What an operation waits for, in words. The gateway names a cause and says who or what in `detail`, which alone does not
//! say which of them it is.

use std::fmt;

use serde::Deserialize;

/// One cause for which something of an operation waits. Read with tolerance: what is not there is empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Blocked {
    cause: String,
    service: Option<String>,
    detail: String,
}

impl Blocked {
    /// Whether it is the brake, which only a person takes off.
    pub fn is_brake(&self) -> bool {
        self.cause == "BRAKE"
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, service, detail } = self;
        let what = match cause.as_str() {
            "PAUSED" => "a resume: paused",
            "HELD" => "a resume: held, since",
            "BRAKE" => "the brake to be taken off: put on",
            "AWAITING_APPROVAL" => "an approval:",
            "THROTTLED" => "its throttle:",
            "IN_FLIGHT_LIMIT" => "its limit of labels in hand:",
            // These differ by service, and what they say tells them apart.
            "NOT_DUE" | "NO_WORKER" => match service {
                Some(service) => return write!(f, "{service}: {detail}"),
                None => "",
            },
            // A cause of a newer gateway.
            _ => "",
        };
        match (what.is_empty(), detail.is_empty()) {
            (true, true) => f.write_str(cause),
            (true, false) => f.write_str(detail),
            (false, true) => f.write_str(what.trim_end_matches(':')),
            (false, false) => write!(f, "{what} {detail}"),
        }
    }
}

/// All of them in one line, each once: a throttle holds in each stage by itself.
pub fn line(all: &[Blocked]) -> String {
    let mut told: Vec<String> = Vec::new();
    for text in all.iter().map(ToString::to_string) {
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(blocked: serde_json::Value) -> String {
        line(&Vec::<Blocked>::deserialize(blocked).unwrap())
    }

    #[test]
    fn the_line_says_which_cause_it_is() {
        let brake = json!([{"cause": "BRAKE", "service": null, "detail": "by ada at 12:00: INC-9"}]);
        assert_eq!(told(brake), "the brake to be taken off: put on by ada at 12:00: INC-9");
        let paused = json!([{"cause": "PAUSED", "detail": "by ada at 12:00: a look"}]);
        assert_eq!(told(paused), "a resume: paused by ada at 12:00: a look");
        let idle =
            json!([{"cause": "NO_WORKER", "service": "studio-renderer", "detail": "no worker ever asked for work"}]);
        assert_eq!(told(idle), "studio-renderer: no worker ever asked for work");
    }

    #[test]
    fn what_each_stage_says_alike_is_told_once() {
        let stage = |service: &str| json!({"cause": "THROTTLED", "service": service, "detail": "40 labels/s"});
        assert_eq!(told(json!([stage("a"), stage("b"), stage("c")])), "its throttle: 40 labels/s");
    }

    #[test]
    fn a_cause_of_a_newer_gateway_is_told_as_it_comes() {
        assert_eq!(told(json!([{"cause": "MOON", "detail": "it is full"}, {"cause": "TIDE"}])), "it is full; TIDE");
    }
}

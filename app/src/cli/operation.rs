//! An operation as the gateway shows it, and what its state means for somebody who waits.
//!
//! Read with tolerance: members that are not there count as nothing, states that this build does not know go on.

use std::time::Duration;

use domain::{TenantId, TrackingId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Exit,
    blocked::{self, Blocked},
    duration,
};

/// Which operation.
#[derive(Debug, Clone)]
pub struct OperationRef {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id within the tenant.
    pub tracking_id: TrackingId,
}

impl OperationRef {
    /// Its path.
    pub fn path(&self) -> String {
        format!("/v1/tenants/{}/operations/{}", self.tenant, self.tracking_id)
    }
}

/// How far an operation must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Until {
    /// Every label is rendered or failed
    Rendered,
    /// Every picture that changed was taken by its label's access point
    Exported,
    /// Every label confirmed, as far as its driver can tell: the operation is finished
    #[default]
    Confirmed,
}

/// One look at an operation.
#[derive(Debug, Clone, Deserialize)]
pub struct Snapshot {
    /// Where it stands, e.g. `RUNNING`.
    pub state: String,
    /// Whether its totals are final.
    #[serde(default)]
    pub expansion_complete: bool,
    #[serde(default)]
    finished_at: Option<String>,
    /// The labels in one glance.
    #[serde(default)]
    pub summary: Summary,
    #[serde(default)]
    stages: Vec<Stage>,
    /// What it waits for, where the gateway says so.
    #[serde(default)]
    blocked_on: Vec<Blocked>,
    #[serde(default)]
    funnel: Vec<FunnelStage>,
    #[serde(default)]
    eta: Eta,
    #[serde(default)]
    controls: Controls,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FunnelStage {
    stage: String,
    waiting: i64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Eta {
    seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Controls {
    approval: Option<Approval>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Approval {
    state: String,
}

/// Labels over all stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// As far as they are known.
    pub labels: i64,
    /// With a new picture.
    pub rendered: i64,
    /// With nothing to change.
    pub unchanged: i64,
    /// Taken by the label's access point.
    pub exported: i64,
    /// Confirmed, as far as the driver can tell.
    pub confirmed: i64,
    /// Given up.
    pub failed: i64,
}

#[derive(Debug, Clone, Deserialize)]
struct Stage {
    #[serde(default, rename = "stage")]
    name: String,
    #[serde(default)]
    labels: Counts,
    #[serde(default)]
    parents: Counts,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Counts {
    waiting: i64,
    leased: i64,
}

impl Counts {
    fn open(&self) -> i64 {
        self.waiting + self.leased
    }
}

/// What a look means for somebody who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on by itself.
    GoesOn,
    /// It does not go on before a person acts.
    Stuck(Exit),
    /// It is over, or as far as was waited for.
    Over(Exit),
}

impl Snapshot {
    /// Out of the gateway's answer; none when that is no operation.
    pub fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    /// What it means for somebody who waits until then.
    pub fn verdict(&self, until: Until) -> Verdict {
        match self.state.as_str() {
            "SUCCEEDED" => Verdict::Over(Exit::Success),
            "FINISHED_WITH_FAILURES" => Verdict::Over(Exit::Failures),
            "FAILED" => Verdict::Over(Exit::Failed),
            "CANCELLED" if self.is_declined() => Verdict::Over(Exit::NotAllowed),
            "CANCELLED" => Verdict::Over(Exit::Cancelled),
            // Somebody's or the system's hold does not undo what is behind the stage that was waited for.
            _ if self.passed(until) => {
                Verdict::Over(if self.summary.failed > 0 { Exit::Failures } else { Exit::Success })
            }
            "PAUSED" | "HELD" => Verdict::Stuck(Exit::Held),
            "AWAITING_APPROVAL" => Verdict::Stuck(Exit::NotAllowed),
            _ if self.finished_at.is_some() => Verdict::Over(Exit::Unexpected),
            // Of a cancelled one, what is in hand finishes under the brake, too.
            "RUNNING" if self.blocked_on.iter().any(Blocked::is_brake) => Verdict::Stuck(Exit::Held),
            _ => Verdict::GoesOn,
        }
    }

    fn is_declined(&self) -> bool {
        self.controls.approval.as_ref().is_some_and(|approval| approval.state == "DECLINED")
    }

    /// Whether nothing is left in the stages up to that one. Only a complete expansion can say so: before it, more comes.
    fn passed(&self, until: Until) -> bool {
        let (stages, funnel) = match until {
            Until::Rendered => (&["rendered"][..], &["expanded", "rendered"][..]),
            Until::Exported => (&["rendered", "merged", "exported"][..], &["expanded", "rendered", "exported"][..]),
            // Only the operation itself knows that nothing is left anywhere.
            Until::Confirmed => return false,
        };
        let mut stages = self.stages.iter().filter(|stage| stages.contains(&stage.name.as_str())).peekable();
        let through = if self.funnel.is_empty() {
            stages.peek().is_some() && stages.all(|stage| stage.labels.open() == 0 && stage.parents.open() == 0)
        } else {
            // What access points hold is exported already, though it still waits in the exporter's stage.
            self.funnel.iter().all(|stage| stage.waiting == 0 || !funnel.contains(&stage.stage.as_str()))
        };
        self.expansion_complete && through
    }

    /// What it waits for, for people; empty when nothing is said.
    pub fn blocked_on(&self) -> String {
        blocked::line(&self.blocked_on)
    }

    /// Labels that need nothing more of this operation.
    pub fn settled(&self) -> i64 {
        self.summary.unchanged + self.summary.confirmed + self.summary.failed
    }

    /// One line that says how far it is. No share of a total that still grows.
    pub fn line(&self) -> String {
        let Summary { labels, rendered, unchanged, exported, confirmed, failed } = self.summary;
        let total =
            if self.expansion_complete { format!("{labels} labels") } else { format!("{labels} labels so far") };
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let blocked = match self.blocked_on() {
            blocked if blocked.is_empty() => blocked,
            blocked => format!("; waits for {blocked}"),
        };
        let eta = match self.eta.seconds {
            Some(seconds) => format!(", done in about {}", duration::text(Duration::from_secs(seconds))),
            None => String::new(),
        };
        format!(
            "{}: {total}, {rendered} rendered, {unchanged} unchanged, {exported} exported, {confirmed} confirmed{failed}{eta}{blocked}",
            self.state
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(state: &str, complete: bool, rendering: i64) -> Snapshot {
        Snapshot::read(&json!({
            "state": state,
            "expansion_complete": complete,
            "summary": {"labels": 10, "rendered": 10 - rendering, "unchanged": 0, "exported": 0, "confirmed": 0, "failed": 0},
            "stages": [
                {"stage": "rendered", "labels": {"waiting": rendering, "leased": 0}, "parents": {"waiting": 0, "leased": 0}},
                {"stage": "merged", "labels": {"waiting": 3, "leased": 1}, "parents": {}},
            ],
            "something": "of a newer gateway",
        }))
        .unwrap()
    }

    #[test]
    fn every_state_ends_a_wait_as_documented() {
        for (state, verdict) in [
            ("RUNNING", Verdict::GoesOn),
            ("CANCELLING", Verdict::GoesOn),
            ("A_STATE_OF_TOMORROW", Verdict::GoesOn),
            ("SUCCEEDED", Verdict::Over(Exit::Success)),
            ("FINISHED_WITH_FAILURES", Verdict::Over(Exit::Failures)),
            ("FAILED", Verdict::Over(Exit::Failed)),
            ("CANCELLED", Verdict::Over(Exit::Cancelled)),
            ("PAUSED", Verdict::Stuck(Exit::Held)),
            ("HELD", Verdict::Stuck(Exit::Held)),
            ("AWAITING_APPROVAL", Verdict::Stuck(Exit::NotAllowed)),
        ] {
            assert_eq!(snapshot(state, true, 0).verdict(Until::Confirmed), verdict, "{state}");
        }
    }

    #[test]
    fn the_brake_ends_a_wait_as_a_pause_does() {
        let braked = |state: &str| {
            let value = json!({"state": state, "blocked_on": [{"cause": "BRAKE", "detail": "by ada"}]});
            Snapshot::read(&value).unwrap().verdict(Until::Confirmed)
        };
        assert_eq!(braked("RUNNING"), Verdict::Stuck(Exit::Held));
        assert_eq!(braked("CANCELLING"), Verdict::GoesOn);
        assert_eq!(braked("SUCCEEDED"), Verdict::Over(Exit::Success));
    }

    #[test]
    fn rendered_is_reached_when_nothing_is_left_to_render_and_nothing_more_comes() {
        assert_eq!(snapshot("RUNNING", true, 0).verdict(Until::Rendered), Verdict::Over(Exit::Success));
        assert_eq!(snapshot("RUNNING", true, 1).verdict(Until::Rendered), Verdict::GoesOn);
        assert_eq!(snapshot("RUNNING", false, 0).verdict(Until::Rendered), Verdict::GoesOn);
        assert_eq!(snapshot("RUNNING", true, 0).verdict(Until::Exported), Verdict::GoesOn, "the merger has some");
    }

    #[test]
    fn no_total_is_claimed_before_it_is_known() {
        assert!(snapshot("RUNNING", false, 4).line().contains("10 labels so far"));
        assert!(snapshot("RUNNING", true, 4).line().contains("10 labels,"));
    }
}

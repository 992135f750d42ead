//! Counts and latencies of requests, in Prometheus' text form.

use std::time::Duration;

use metrics::{counter, histogram, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Upper bounds of the latency buckets, in seconds: from one in-process call to the request time-out.
const LATENCY_BUCKETS_S: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// One gateway's own recorder: several gateways of one process do not mix.
pub(crate) struct Metering {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metering {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // Refused only when there are no buckets.
        let builder = builder.set_buckets(&LATENCY_BUCKETS_S).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle }
    }

    /// One answered request. `route` is the pattern, never the path, so the number of series is bounded.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let labels =
            [("method", known_method(method).to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
        with_local_recorder(&self.recorder, || {
            counter!("reshelf_http_requests_total", &labels).increment(1);
            histogram!("reshelf_http_request_seconds", &labels).record(took.as_secs_f64());
        });
    }

    /// All series as text.
    pub(crate) fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}

/// Clients may invent methods; series may not multiply with them.
fn known_method(method: &str) -> &'static str {
    match method {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
